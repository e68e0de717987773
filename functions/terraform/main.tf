# The stack of ../../template.yaml for Terraform: API, function, shared cache, failed events, provisioned concurrency,
# alarms and dashboard. A test holds every property equal to the template's, which explains them. docs/terraform.md
# says how to use this module, and what only the template has.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 6.10" }
  }
}

locals {
  is_provisioned           = var.cold_start_mode == "Provisioned"
  is_snap_start            = var.cold_start_mode == "SnapStart"
  is_open                  = var.auth_mode == "None"
  has_jwt                  = var.auth_mode == "JWT"
  has_cors                 = var.cors_allow_origin != ""
  has_l1_cache_bytes       = var.l1_cache_bytes != ""
  has_reserved_concurrency = var.reserved_concurrency != ""
  keeps_failed_events      = var.keep_failed_events == "on"
}

# --- The API -------------------------------------------------------------------------------------------

resource "aws_apigatewayv2_api" "http" {
  name          = var.name
  description   = "${var.name}: POST /v1/predict, documented at /docs"
  protocol_type = "HTTP"

  dynamic "cors_configuration" {
    for_each = local.has_cors ? [1] : []
    content {
      allow_origins  = [var.cors_allow_origin]
      allow_methods  = ["DELETE", "GET", "POST"]
      allow_headers  = ["authorization", "content-encoding", "content-type", "idempotency-key", "x-amz-date", "x-amz-security-token", "x-request-id"]
      expose_headers = ["server-timing"]
      max_age        = 3600
    }
  }
}

resource "aws_apigatewayv2_authorizer" "callers" {
  count            = local.has_jwt ? 1 : 0
  api_id           = aws_apigatewayv2_api.http.id
  name             = "Callers"
  authorizer_type  = "JWT"
  identity_sources = ["$request.header.Authorization"]

  jwt_configuration {
    issuer   = var.jwt_issuer
    audience = [var.jwt_audience]
  }
}

resource "aws_apigatewayv2_integration" "predict" {
  api_id                 = aws_apigatewayv2_api.http.id
  integration_type       = "AWS_PROXY"
  integration_method     = "POST"
  integration_uri        = aws_lambda_alias.live.invoke_arn
  payload_format_version = "2.0"
  timeout_milliseconds   = 30000
}

resource "aws_apigatewayv2_route" "any" {
  api_id             = aws_apigatewayv2_api.http.id
  route_key          = "$default"
  target             = "integrations/${aws_apigatewayv2_integration.predict.id}"
  authorization_type = local.is_open ? "NONE" : local.has_jwt ? "JWT" : "AWS_IAM"
  authorizer_id      = one(aws_apigatewayv2_authorizer.callers[*].id)
}

resource "aws_apigatewayv2_stage" "default" {
  api_id      = aws_apigatewayv2_api.http.id
  name        = "$default"
  auto_deploy = true

  default_route_settings {
    throttling_rate_limit    = var.throttle_rate
    throttling_burst_limit   = var.throttle_burst
    detailed_metrics_enabled = true
  }

  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.api.arn
    format          = "{\"requestId\":\"$context.requestId\",\"time\":\"$context.requestTime\",\"method\":\"$context.httpMethod\", \"status\":\"$context.status\",\"responseBytes\":\"$context.responseLength\",\"latencyMs\":\"$context.responseLatency\", \"integrationMs\":\"$context.integrationLatency\",\"functionRequestId\":\"$context.integration.requestId\", \"error\":$context.error.messageString}"
  }
}

resource "aws_lambda_permission" "any_route" {
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.predict.function_name
  qualifier     = aws_lambda_alias.live.name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.http.execution_arn}/*/*"
}

resource "aws_cloudwatch_log_group" "api" {
  name              = "/aws/apigateway/${var.name}"
  retention_in_days = var.log_retention_days
}

# --- The function --------------------------------------------------------------------------------------

resource "aws_lambda_function" "predict" {
  function_name                  = "${var.name}-predict"
  description                    = "Classifies texts; one request at a time per execution environment"
  package_type                   = "Image"
  image_uri                      = var.image_uri
  architectures                  = [var.architecture]
  memory_size                    = var.memory_size
  timeout                        = 29
  reserved_concurrent_executions = local.has_reserved_concurrency ? var.reserved_concurrency : null
  role                           = aws_iam_role.predict.arn
  publish                        = true

  dynamic "snap_start" {
    for_each = local.is_snap_start ? [1] : []
    content {
      apply_on = "PublishedVersions"
    }
  }

  logging_config {
    log_group  = aws_cloudwatch_log_group.predict.name
    log_format = "Text"
  }

  environment {
    variables = merge({
      COLDFRAME_MODEL_DIR         = "/opt/model"
      COLDFRAME_MODELS            = var.models
      COLDFRAME_CACHE_TABLE       = aws_dynamodb_table.cache.name
      COLDFRAME_CACHE_BUCKET      = aws_s3_bucket.cache.id
      COLDFRAME_CACHE_POLICY      = var.cache_policy
      COLDFRAME_LOG_LEVEL         = var.log_level
      COLDFRAME_METRICS_NAMESPACE = "Coldframe/${var.name}"
      COLDFRAME_TRACES            = "log"
      COLDFRAME_SKETCHES          = "log"
    }, local.has_l1_cache_bytes ? { COLDFRAME_L1_CACHE_BYTES = var.l1_cache_bytes } : {})
  }

  # Its permissions are there before it runs.
  depends_on = [
    aws_iam_role_policy.write_logs,
    aws_iam_role_policy.use_prediction_cache,
    aws_iam_role_policy.keep_failed_events,
  ]
}

resource "aws_lambda_alias" "live" {
  name             = "live"
  function_name    = aws_lambda_function.predict.function_name
  function_version = aws_lambda_function.predict.version
}

resource "aws_iam_role" "predict" {
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "lambda.amazonaws.com" }, Action = "sts:AssumeRole" }]
  })
}

resource "aws_iam_role_policy" "write_logs" {
  name = "WriteLogs"
  role = aws_iam_role.predict.id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = ["logs:CreateLogStream", "logs:PutLogEvents"], Resource = "${aws_cloudwatch_log_group.predict.arn}:*" }]
  })
}

resource "aws_iam_role_policy" "use_prediction_cache" {
  name = "UsePredictionCache"
  role = aws_iam_role.predict.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      { Effect = "Allow", Action = ["dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"], Resource = aws_dynamodb_table.cache.arn },
      { Effect = "Allow", Action = ["s3:GetObject", "s3:PutObject"], Resource = "${aws_s3_bucket.cache.arn}/values/*" },
    ]
  })
}

resource "aws_iam_role_policy" "keep_failed_events" {
  count = local.keeps_failed_events ? 1 : 0
  name  = "KeepFailedEvents"
  role  = aws_iam_role.predict.id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sqs:SendMessage", Resource = aws_sqs_queue.failed_events.arn }]
  })
}

resource "aws_cloudwatch_log_group" "predict" {
  name              = "/aws/lambda/${var.name}-predict"
  retention_in_days = var.log_retention_days
}

# --- The shared cache ----------------------------------------------------------------------------------

resource "aws_dynamodb_table" "cache" {
  name         = "${var.name}-cache"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "cache_key"

  attribute {
    name = "cache_key"
    type = "S"
  }

  ttl {
    attribute_name = "expires_at_s"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled = true
  }
}

# A prefix and no name: names of buckets are unique on the whole of AWS.
resource "aws_s3_bucket" "cache" {
  bucket_prefix = "${var.name}-cache-"
}

resource "aws_s3_bucket_server_side_encryption_configuration" "cache" {
  bucket = aws_s3_bucket.cache.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_public_access_block" "cache" {
  bucket                  = aws_s3_bucket.cache.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "cache" {
  bucket = aws_s3_bucket.cache.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "cache" {
  bucket = aws_s3_bucket.cache.id

  rule {
    id     = "forget"
    status = "Enabled"

    filter {}

    expiration {
      days = 30
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }
}

resource "aws_s3_bucket_policy" "cache" {
  bucket = aws_s3_bucket.cache.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OnlyOverTls", Effect = "Deny", Principal = "*", Action = "s3:*",
      Resource  = [aws_s3_bucket.cache.arn, "${aws_s3_bucket.cache.arn}/*"],
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}

# --- Asynchronous events that failed -------------------------------------------------------------------

resource "aws_lambda_function_event_invoke_config" "predict" {
  function_name                = aws_lambda_function.predict.function_name
  qualifier                    = aws_lambda_alias.live.name
  maximum_retry_attempts       = 2
  maximum_event_age_in_seconds = 3600

  dynamic "destination_config" {
    for_each = local.keeps_failed_events ? [1] : []
    content {
      on_failure {
        destination = aws_sqs_queue.failed_events.arn
      }
    }
  }
}

resource "aws_sqs_queue" "failed_events" {
  sqs_managed_sse_enabled   = true
  max_message_size          = 1048576
  message_retention_seconds = 1209600
}

resource "aws_sqs_queue_policy" "failed_events" {
  queue_url = aws_sqs_queue.failed_events.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OnlyOverTls", Effect = "Deny", Principal = "*", Action = "sqs:*",
      Resource  = aws_sqs_queue.failed_events.arn,
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}

# --- Environments kept ready ---------------------------------------------------------------------------

# Scaling changes the number afterwards.
resource "aws_lambda_provisioned_concurrency_config" "live" {
  count                             = local.is_provisioned ? 1 : 0
  function_name                     = aws_lambda_function.predict.function_name
  qualifier                         = aws_lambda_alias.live.name
  provisioned_concurrent_executions = var.provisioned_concurrency_min

  lifecycle {
    ignore_changes = [provisioned_concurrent_executions]
  }
}

resource "aws_appautoscaling_target" "provisioned_concurrency" {
  count              = local.is_provisioned ? 1 : 0
  service_namespace  = "lambda"
  scalable_dimension = "lambda:function:ProvisionedConcurrency"
  resource_id        = "function:${aws_lambda_function.predict.function_name}:${aws_lambda_alias.live.name}"
  min_capacity       = var.provisioned_concurrency_min
  max_capacity       = var.provisioned_concurrency_max
}

resource "aws_appautoscaling_policy" "provisioned_concurrency" {
  count              = local.is_provisioned ? 1 : 0
  name               = "utilization"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.provisioned_concurrency[0].service_namespace
  scalable_dimension = aws_appautoscaling_target.provisioned_concurrency[0].scalable_dimension
  resource_id        = aws_appautoscaling_target.provisioned_concurrency[0].resource_id

  target_tracking_scaling_policy_configuration {
    target_value = 0.7

    predefined_metric_specification {
      predefined_metric_type = "LambdaProvisionedConcurrencyUtilization"
    }
  }
}

# --- Watching ------------------------------------------------------------------------------------------

# The template's own file, which has no code to upload: Terraform creates it as a stack.
resource "aws_cloudformation_stack" "watching" {
  name          = "${var.name}-watching"
  template_body = file("${path.module}/../watching.yaml")
  capabilities  = ["CAPABILITY_AUTO_EXPAND"]

  parameters = {
    FunctionName     = aws_lambda_function.predict.function_name
    Architecture     = var.architecture
    MemorySize       = var.memory_size
    MetricsNamespace = "Coldframe/${var.name}"
    LogGroupName     = aws_cloudwatch_log_group.predict.name
    ColdStartMode    = var.cold_start_mode
    ApiId            = aws_apigatewayv2_api.http.id
    TableName        = aws_dynamodb_table.cache.name
    QueueName        = aws_sqs_queue.failed_events.name
    OfflineBucket    = ""
    StateMachineArn  = ""
    AlarmEmail       = var.alarm_email
    LatencyAlarmMs   = var.latency_alarm_ms
    InitAlarmMs      = var.init_alarm_ms
    CostAlarmUsd     = var.cost_alarm_usd
  }
}
