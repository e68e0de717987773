"""AWS APIs that the emulator answers for boto3 and the AWS CLI: CloudWatch, its logs, and scaling."""
