"""Classifying every row of an object in S3."""
