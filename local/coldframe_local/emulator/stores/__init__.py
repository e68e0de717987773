"""Local DynamoDB, S3 and SQS: moto's server with the template's tables, buckets and queues."""
