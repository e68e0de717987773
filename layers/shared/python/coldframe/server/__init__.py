"""Server that stays, beside the Lambda function: connections, intake, threads, tokens and metrics."""
