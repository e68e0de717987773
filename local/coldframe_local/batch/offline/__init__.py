"""Predictions for every row of an object in S3, by AWS or on this machine."""
