"""Prediction cache: in memory, shared in DynamoDB and S3, and the policy of when a look-up pays."""
