"""The server that stays: the second way in, beside the Lambda function."""
