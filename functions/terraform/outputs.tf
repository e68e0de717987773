output "api_url" {
  description = "Base address of the HTTP API; in auth_mode IAM requests are signed for execute-api (Signature Version 4)"
  value       = aws_apigatewayv2_api.http.api_endpoint
}

output "predict_function_alias_arn" {
  description = "The alias that the API calls; provisioned concurrency belongs to it"
  value       = aws_lambda_alias.live.arn
}

output "cache_table_name" {
  description = "Table of the shared prediction cache"
  value       = aws_dynamodb_table.cache.name
}

output "cache_bucket_name" {
  description = "Bucket of cached values that are too large for the table"
  value       = aws_s3_bucket.cache.id
}

output "failed_events_url" {
  description = "Queue of asynchronous events that failed every attempt"
  value       = aws_sqs_queue.failed_events.id
}

output "dashboard_url" {
  description = "Dashboard of requests, durations, cold starts, environments, the shared cache and failed events"
  value       = "https://${data.aws_region.this.region}.console.aws.amazon.com/cloudwatch/home?region=${data.aws_region.this.region}#dashboards/dashboard/${aws_cloudformation_stack.watching.outputs.DashboardName}"
}

data "aws_region" "this" {}
