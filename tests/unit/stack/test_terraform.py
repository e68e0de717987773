"""The Terraform module has the template's resources, with its properties, its parameters and its limits.

Both are compared as they are written: the template's properties, translated to Terraform's expressions, are
the module's.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hcl2
import pytest

from coldframe_local.emulator.template.syntax.documents import read_document
from tests.conftest import ROOT

MODULE = ROOT / "functions" / "terraform"
TEMPLATE = read_document(ROOT / "template.yaml")
NO_VALUE = {"Ref": "AWS::NoValue"}
LEAVES = ("PolicyDocument", "AssumeRolePolicyDocument")
META = ("__is_block__", "__comments__", "lifecycle", "depends_on")

REFERENCES = {
    "AWS::StackName": "var.name",
    "ApiLogGroup.Arn": "aws_cloudwatch_log_group.api.arn",
    "CacheBucket": "aws_s3_bucket.cache.id",
    "CacheBucket.Arn": "aws_s3_bucket.cache.arn",
    "CacheTable": "aws_dynamodb_table.cache.name",
    "CacheTable.Arn": "aws_dynamodb_table.cache.arn",
    "FailedEvents": "aws_sqs_queue.failed_events.id",
    "FailedEvents.Arn": "aws_sqs_queue.failed_events.arn",
    "FailedEvents.QueueName": "aws_sqs_queue.failed_events.name",
    "HttpApi": "aws_apigatewayv2_api.http.id",
    "PredictFunction": "aws_lambda_function.predict.function_name",
    "PredictLogGroup": "aws_cloudwatch_log_group.predict.name",
    # CloudFormation's ARN of a log group ends in `:*`, Terraform's does not.
    "PredictLogGroup.Arn": '"${aws_cloudwatch_log_group.predict.arn}:*"',
    "PredictRole.Arn": "aws_iam_role.predict.arn",
}

INTEGRATION = "DefinitionBody/paths/$default/x-amazon-apigateway-any-method/x-amazon-apigateway-integration"
CORS = "DefinitionBody/x-amazon-apigateway-cors"
TRACKING = "TargetTrackingScalingPolicyConfiguration"
TRACKING_BLOCK = "target_tracking_scaling_policy_configuration"

# Where each property of the module is in the template, by resource: Terraform's name, CloudFormation's name.
SAME: dict[tuple[str, str], dict[str, str]] = {
    ("aws_apigatewayv2_api.http", "HttpApi"): {
        "description": "Description",
        "cors_configuration?": f"{CORS}?",
        "cors_configuration/allow_origins": f"{CORS}/allowOrigins",
        "cors_configuration/allow_methods": f"{CORS}/allowMethods",
        "cors_configuration/allow_headers": f"{CORS}/allowHeaders",
        "cors_configuration/expose_headers": f"{CORS}/exposeHeaders",
        "cors_configuration/max_age": f"{CORS}/maxAge",
    },
    ("aws_apigatewayv2_integration.predict", "HttpApi"): {
        "integration_method": f"{INTEGRATION}/httpMethod",
        "payload_format_version": f"{INTEGRATION}/payloadFormatVersion",
        "timeout_milliseconds": f"{INTEGRATION}/timeoutInMillis",
    },
    ("aws_apigatewayv2_stage.default", "HttpApi"): {
        "default_route_settings/throttling_rate_limit": "DefaultRouteSettings/ThrottlingRateLimit",
        "default_route_settings/throttling_burst_limit": "DefaultRouteSettings/ThrottlingBurstLimit",
        "default_route_settings/detailed_metrics_enabled": "DefaultRouteSettings/DetailedMetricsEnabled",
        "access_log_settings/destination_arn": "AccessLogSettings/DestinationArn",
        "access_log_settings/format": "AccessLogSettings/Format",
    },
    ("aws_cloudwatch_log_group.api", "ApiLogGroup"): {
        "name": "LogGroupName",
        "retention_in_days": "RetentionInDays",
    },
    ("aws_cloudwatch_log_group.predict", "PredictLogGroup"): {
        "name": "LogGroupName",
        "retention_in_days": "RetentionInDays",
    },
    ("aws_lambda_function.predict", "PredictFunction"): {
        "description": "Description",
        "package_type": "PackageType",
        "architectures": "Architectures",
        "memory_size": "MemorySize",
        "timeout": "Timeout",
        "reserved_concurrent_executions": "ReservedConcurrentExecutions",
        "role": "Role",
        "logging_config/log_group": "LoggingConfig/LogGroup",
        "logging_config/log_format": "LoggingConfig/LogFormat",
    },
    ("aws_lambda_alias.live", "PredictFunction"): {"name": "AutoPublishAlias"},
    ("aws_lambda_provisioned_concurrency_config.live", "PredictFunction"): {
        "?": "ProvisionedConcurrencyConfig?",
        "provisioned_concurrent_executions": "ProvisionedConcurrencyConfig/ProvisionedConcurrentExecutions",
    },
    ("aws_iam_role.predict", "PredictRole"): {"assume_role_policy": "AssumeRolePolicyDocument"},
    ("aws_dynamodb_table.cache", "CacheTable"): {
        "billing_mode": "BillingMode",
        "hash_key": "KeySchema/AttributeName",
        "attribute/name": "AttributeDefinitions/AttributeName",
        "attribute/type": "AttributeDefinitions/AttributeType",
        "ttl/attribute_name": "TimeToLiveSpecification/AttributeName",
        "ttl/enabled": "TimeToLiveSpecification/Enabled",
        "point_in_time_recovery/enabled": "PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled",
        "server_side_encryption/enabled": "SSESpecification/SSEEnabled",
    },
    ("aws_s3_bucket_server_side_encryption_configuration.cache", "CacheBucket"): {
        "rule/apply_server_side_encryption_by_default/sse_algorithm": "BucketEncryption"
        "/ServerSideEncryptionConfiguration/ServerSideEncryptionByDefault/SSEAlgorithm",
    },
    ("aws_s3_bucket_public_access_block.cache", "CacheBucket"): {
        name: f"PublicAccessBlockConfiguration/{other}"
        for name, other in {
            "block_public_acls": "BlockPublicAcls",
            "block_public_policy": "BlockPublicPolicy",
            "ignore_public_acls": "IgnorePublicAcls",
            "restrict_public_buckets": "RestrictPublicBuckets",
        }.items()
    },
    ("aws_s3_bucket_ownership_controls.cache", "CacheBucket"): {
        "rule/object_ownership": "OwnershipControls/Rules/ObjectOwnership",
    },
    ("aws_s3_bucket_lifecycle_configuration.cache", "CacheBucket"): {
        "rule/id": "LifecycleConfiguration/Rules/Id",
        "rule/status": "LifecycleConfiguration/Rules/Status",
        "rule/expiration/days": "LifecycleConfiguration/Rules/ExpirationInDays",
        "rule/abort_incomplete_multipart_upload/days_after_initiation": "LifecycleConfiguration/Rules"
        "/AbortIncompleteMultipartUpload/DaysAfterInitiation",
    },
    ("aws_s3_bucket_policy.cache", "CacheBucketPolicy"): {"bucket": "Bucket", "policy": "PolicyDocument"},
    ("aws_lambda_function_event_invoke_config.predict", "PredictEventInvokeConfig"): {
        "function_name": "FunctionName",
        "qualifier": "Qualifier",
        "maximum_retry_attempts": "MaximumRetryAttempts",
        "maximum_event_age_in_seconds": "MaximumEventAgeInSeconds",
        "destination_config?": "DestinationConfig?",
        "destination_config/on_failure/destination": "DestinationConfig/OnFailure/Destination",
    },
    ("aws_sqs_queue.failed_events", "FailedEvents"): {
        "sqs_managed_sse_enabled": "SqsManagedSseEnabled",
        "max_message_size": "MaximumMessageSize",
        "message_retention_seconds": "MessageRetentionPeriod",
    },
    ("aws_sqs_queue_policy.failed_events", "FailedEventsPolicy"): {"policy": "PolicyDocument"},
    ("aws_appautoscaling_target.provisioned_concurrency", "ProvisionedConcurrencyTarget"): {
        "?": "?",
        "service_namespace": "ServiceNamespace",
        "scalable_dimension": "ScalableDimension",
        "resource_id": "ResourceId",
        "min_capacity": "MinCapacity",
        "max_capacity": "MaxCapacity",
    },
    ("aws_appautoscaling_policy.provisioned_concurrency", "ProvisionedConcurrencyPolicy"): {
        "?": "?",
        "name": "PolicyName",
        "policy_type": "PolicyType",
        f"{TRACKING_BLOCK}/target_value": f"{TRACKING}/TargetValue",
        f"{TRACKING_BLOCK}/predefined_metric_specification/predefined_metric_type": (
            f"{TRACKING}/PredefinedMetricSpecification/PredefinedMetricType"
        ),
    },
}

OTHER_TESTS = {
    "aws_apigatewayv2_authorizer.callers",
    "aws_apigatewayv2_route.any",
    "aws_cloudformation_stack.watching",
    "aws_iam_role_policy.keep_failed_events",
    "aws_iam_role_policy.use_prediction_cache",
    "aws_iam_role_policy.write_logs",
    "aws_lambda_permission.any_route",
    "aws_s3_bucket.cache",
}
"""Resources of the module that are compared by tests of their own, or have nothing to compare."""

ONLY_IN_MODULE = {
    "aws_apigatewayv2_api.http": {"name", "protocol_type"},
    "aws_apigatewayv2_integration.predict": {"api_id", "integration_type", "integration_uri"},
    "aws_apigatewayv2_stage.default": {"api_id", "name", "auto_deploy"},
    "aws_lambda_function.predict": {
        "function_name", "image_uri", "publish", "environment/variables", "snap_start?",
        "snap_start/apply_on",
    },
    "aws_lambda_alias.live": {"function_name", "function_version"},
    "aws_lambda_provisioned_concurrency_config.live": {"function_name", "qualifier"},
    "aws_dynamodb_table.cache": {"name"},
    "aws_s3_bucket_server_side_encryption_configuration.cache": {"bucket"},
    "aws_s3_bucket_public_access_block.cache": {"bucket"},
    "aws_s3_bucket_ownership_controls.cache": {"bucket"},
    "aws_s3_bucket_lifecycle_configuration.cache": {"bucket"},
    "aws_sqs_queue_policy.failed_events": {"queue_url"},
    "aws_appautoscaling_policy.provisioned_concurrency": {
        "service_namespace", "scalable_dimension", "resource_id",
    },
}  # fmt: skip
"""Names and links, which CloudFormation makes itself, and what a test of its own compares."""

ONLY_IN_TEMPLATE = {
    # What CloudFormation or SAM needs, and Terraform says otherwise; and traffic that shifts in steps.
    "PredictFunction": (
        "AutoPublishAliasAllProperties", "VersionDescription", "DeploymentPreference", "Events",
        "Environment", "SnapStart",
    ),
    "HttpApi": ("FailOnWarnings", "DefinitionBody/openapi", "DefinitionBody/info",
                "DefinitionBody/components",
                "DefinitionBody/paths/$default/x-amazon-apigateway-any-method/isDefaultRoute",
                "DefinitionBody/paths/$default/x-amazon-apigateway-any-method/security",
                "DefinitionBody/paths/$default/x-amazon-apigateway-any-method/responses",
                f"{INTEGRATION}/type", f"{INTEGRATION}/uri"),
    "CacheTable": ("KeySchema/KeyType",),
    "PredictRole": ("Policies",),
    "FailedEventsPolicy": ("Queues",),
    "ProvisionedConcurrencyPolicy": ("ScalingTargetId",),
}  # fmt: skip

APPLICATIONS = {
    "Deployment",
    "Experiment",
    "Feedback",
    "JobsWorker",
    "Monitoring",
    "Offline",
    "Traces",
    "Warmer",
}
"""Nested stacks that the module does not have. docs/terraform.md names them."""

LEFT_OUT = {
    "ImageExtra", "Jobs", "JobsConcurrency", "JobsKeepDays", "JobsSources", "JobsWebhookHosts",
    "JobsWebhookKey", "Experiments", "FeedbackDays", "FeedbackKey", "FeedbackKeyNumber", "FeedbackSample",
    "FeedbackTextKey",
    "KeptVersions", "LambdaBase", "Monitor", "MonitorRiskAlarm", "MonitorSlot",
    "OfflineBucket", "ColdStartUsd", "TracesHeaders", "TracesTo",
    "TrafficShift", "WarmEnvironments",
    "WarmGuaranteed", "WarmMaximum", "WarmMinimum", "WarmPrediction", "WarmUsdPerDay",
}  # fmt: skip
"""Parameters of these stacks, and of the build of the image."""


@cache
def module() -> dict[str, dict[str, Any]]:
    """Resources of the module by their address."""
    document = hcl2.loads((MODULE / "main.tf").read_text())
    return {
        f"{kind[1:-1]}.{name[1:-1]}": body
        for resource in document["resource"]
        for kind, named in resource.items()
        for name, body in named.items()
    }


def snake(name: str) -> str:
    """The name of a parameter or a condition, as Terraform writes names."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def expression(value: Any) -> str:
    """A value of the template as an expression of Terraform, without spaces outside strings."""
    match value:
        case {"Ref": "AWS::NoValue"}:
            return "null"
        case {"Ref": str(name)}:
            return _reference(name)
        case {"Fn::GetAtt": name}:
            return _reference(name if isinstance(name, str) else ".".join(name))
        case {"Fn::Sub": str(text)}:
            return json.dumps(
                re.sub(r"\$\{([^}]+)\}", lambda match: f"${{{_reference(match[1])}}}", text),
                ensure_ascii=False,
            )
        case {"Fn::If": [condition, yes, no]}:
            return f"local.{snake(condition)}?{expression(yes)}:{expression(no)}"
        case dict():
            return "{" + ",".join(f"{_key(key)}={expression(entry)}" for key, entry in value.items()) + "}"
        case list():
            return "[" + ",".join(map(expression, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _reference(name: str) -> str:
    """Expression of a resource's attribute; one that no property of the module can equal, if it has none."""
    return f"var.{snake(name)}" if name in TEMPLATE["Parameters"] else REFERENCES.get(name, f"only.{name}")


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def written(value: Any) -> str:
    """A value of the module as its expression, without spaces outside strings."""
    match value:
        case str() if value.startswith("${"):
            text = value[2:-1]
        case str():
            text = value
        case list():
            text = "[" + ",".join(map(written, value)) + "]"
        case _:
            text = json.dumps(value)
    text = text.replace('"${aws_lambda_alias.live.name}"', '"live"').replace(
        "${aws_lambda_alias.live.name}", "live"
    )
    text = text.replace("aws_lambda_alias.live.name", '"live"')
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(part if part.startswith('"') else re.sub(r"\s", "", part) for part in parts)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Paths and expressions of a resource in the template. `path?` is the condition of what is there."""
    match value:
        case {"Fn::If": [condition, inner, dict(otherwise)]} if (
            otherwise == NO_VALUE and isinstance(inner, dict) and not _is_intrinsic(inner)
        ):
            yield f"{path}?", f"local.{snake(condition)}"
            yield from leaves(inner, path)
        case dict() if not _is_intrinsic(value) and path.rpartition("/")[2] not in LEAVES:
            for name, inner in value.items():
                yield from leaves(inner, f"{path}/{name}".lstrip("/"))
        case [dict(only)] if not _is_intrinsic(only) and not path.endswith("Policies"):
            yield from leaves(only, path)
        case _:
            text = expression(value) if "Policies" not in path else ""
            yield path, f"jsonencode({text})" if path.rpartition("/")[2] in LEAVES else text


def _is_intrinsic(value: dict[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref"))


def blocks(body: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Paths and expressions of a resource in the module, in the form of `leaves`."""
    for name, value in body.items():
        at = f"{path}/{name}".lstrip("/")
        if name in META:
            continue
        if name == "count":
            yield "?", written(value).removesuffix("?1:0")
        elif name == "dynamic":
            for dynamic in value:
                for kind, content in dynamic.items():
                    at = f"{path}/{kind[1:-1]}".lstrip("/")
                    yield f"{at}?", written(content["for_each"]).removesuffix("?[1]:[]")
                    yield from blocks(content["content"][0], at)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            (block,) = value
            yield from blocks(block, at)
        else:
            yield at, written(value)


def of_template(name: str) -> dict[str, str]:
    resource = TEMPLATE["Resources"][name]
    condition = {"?": f"local.{snake(resource['Condition'])}"} if "Condition" in resource else {}
    return dict(leaves(resource.get("Properties", {}))) | condition


@pytest.mark.parametrize(("address", "name"), SAME, ids=lambda value: str(value))
def test_properties_are_the_same(address: str, name: str) -> None:
    """Each property is the template's, and the module has no other one than names and links."""
    mine, template = dict(blocks(module()[address])), of_template(name)
    pairs = SAME[address, name]
    expected = {path: _unspaced(template[other]) for path, other in pairs.items()}
    assert {path: mine.get(path) for path in pairs} == expected
    assert mine.keys() - pairs.keys() == ONLY_IN_MODULE.get(address, set())


def _unspaced(text: str) -> str:
    return written(f"${{{text}}}")


def test_every_resource_is_compared() -> None:
    """The module has no resource that no test compares."""
    assert {address for address, _ in SAME} | OTHER_TESTS == module().keys()
    assert {address for address, _ in SAME} & OTHER_TESTS == set()


def test_every_property_of_the_template_is_in_the_module() -> None:
    """A property that the template gets must be added to the module, or to what only the template has."""
    for name, resource in TEMPLATE["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Application":
            continue
        compared = {other for (_, of), pairs in SAME.items() if of == name for other in pairs.values()}
        left_out = ONLY_IN_TEMPLATE.get(name, ())
        missing = {
            path for path in of_template(name).keys() - compared
            if not any(path == prefix or path.startswith((f"{prefix}/", f"{prefix}?")) for prefix in left_out)
        }  # fmt: skip
        assert missing == set(), name


def test_nested_stacks_are_named() -> None:
    """Both have the alarms' nested stack, and docs/terraform.md names those that only the template has."""
    resources = TEMPLATE["Resources"].items()
    nested = {name for name, of in resources if of["Type"] == "AWS::Serverless::Application"}
    assert nested == {"Watching", *APPLICATIONS}
    page = (ROOT / "docs" / "terraform.md").read_text()
    for name in APPLICATIONS:
        assert f"| `{name}` |" in page


def test_environment_is_the_same() -> None:
    """The function gets the same settings, except those of jobs, feedback and experiments."""
    variables = TEMPLATE["Resources"]["PredictFunction"]["Properties"]["Environment"]["Variables"]
    others = ("COLDFRAME_EXPERIMENTS", "COLDFRAME_FEEDBACK_", "COLDFRAME_JOBS_")
    own = {name: value for name, value in variables.items() if not name.startswith(others)}
    optional = {
        name: value["Fn::If"] for name, value in own.items() if isinstance(value, dict) and "Fn::If" in value
    }
    assert all(otherwise == NO_VALUE for _, _, otherwise in optional.values())
    always = expression({name: value for name, value in own.items() if name not in optional})
    cases = [
        f"local.{snake(of)}?{expression({name: value})}:{{}}" for name, (of, value, _) in optional.items()
    ]
    mine = dict(blocks(module()["aws_lambda_function.predict"]))
    assert mine["environment/variables"] == _unspaced(f"merge({','.join([always, *cases])})")


def test_snapshots_are_of_published_versions() -> None:
    """SnapStart is on in its mode alone."""
    (apply_on,) = TEMPLATE["Resources"]["PredictFunction"]["Properties"]["SnapStart"].values()
    condition, on, off = apply_on["Fn::If"]
    mine = dict(blocks(module()["aws_lambda_function.predict"]))
    assert (mine["snap_start?"], mine["snap_start/apply_on"]) == (f"local.{snake(condition)}", json.dumps(on))
    assert off == "None"


def test_role_may_do_the_same() -> None:
    """Each policy of the function's role is a resource, under the same name and condition."""
    expected = {}
    for policy in TEMPLATE["Resources"]["PredictRole"]["Properties"]["Policies"]:
        condition, inner, _ = policy.get("Fn::If", (None, policy, None))
        one = {"policy": _unspaced(f"jsonencode({expression(inner['PolicyDocument'])})")}
        one |= {"?": f"local.{snake(condition)}"} if condition else {}
        expected[inner["PolicyName"]] = one
    policies = {}
    for address, body in module().items():
        if address.startswith("aws_iam_role_policy."):
            mine = dict(blocks(body))
            assert mine.pop("role") == "aws_iam_role.predict.id"
            policies[json.loads(mine.pop("name"))] = mine
    assert policies == expected


def test_callers_are_the_same() -> None:
    """The route is open, takes tokens, or takes signatures, as `AuthMode` says, and calls the alias alone."""
    method = TEMPLATE["Resources"]["HttpApi"]["Properties"]["DefinitionBody"]["paths"]["$default"]
    (operation,) = method.values()
    assert operation["security"]["Fn::If"][0] == "IsOpen"
    body = TEMPLATE["Resources"]["HttpApi"]["Properties"]["DefinitionBody"]
    condition, jwt, signed = body["components"]["securitySchemes"]["Callers"]["Fn::If"]
    assert (condition, signed["x-amazon-apigateway-authtype"]) == ("HasJwt", "awsSigv4")
    route = dict(blocks(module()["aws_apigatewayv2_route.any"]))
    assert route["route_key"] == '"$default"'
    assert route["authorization_type"] == 'local.is_open?"NONE":local.has_jwt?"JWT":"AWS_IAM"'
    assert route["authorizer_id"] == "one(aws_apigatewayv2_authorizer.callers[*].id)"
    authorizer = dict(blocks(module()["aws_apigatewayv2_authorizer.callers"]))
    settings = jwt["x-amazon-apigateway-authorizer"]
    assert (authorizer["?"], authorizer["authorizer_type"]) == ("local.has_jwt", '"JWT"')
    assert authorizer["identity_sources"] == expression([settings["identitySource"]])
    assert authorizer["jwt_configuration/issuer"] == expression(settings["jwtConfiguration"]["issuer"])
    assert authorizer["jwt_configuration/audience"] == expression(settings["jwtConfiguration"]["audience"])
    permission = dict(blocks(module()["aws_lambda_permission.any_route"]))
    assert (permission["principal"], permission["qualifier"]) == ('"apigateway.amazonaws.com"', '"live"')
    integration = dict(blocks(module()["aws_apigatewayv2_integration.predict"]))
    assert integration["integration_uri"] == "aws_lambda_alias.live.invoke_arn"


def test_alarms_are_the_templates_own_file() -> None:
    """The alarms and the dashboard are created of functions/watching.yaml, with the same parameters."""
    mine = dict(blocks(module()["aws_cloudformation_stack.watching"]))
    assert mine["template_body"] == 'file("${path.module}/../watching.yaml")'
    body = module()["aws_cloudformation_stack.watching"]["parameters"]
    parameters = {name: written(value) for name, value in body.items() if name not in META}
    template = TEMPLATE["Resources"]["Watching"]["Properties"]["Parameters"]
    absent = {"OfflineBucket": '""', "StateMachineArn": '""'}
    assert (
        parameters
        == {name: expression(value) for name, value in template.items() if name not in absent} | absent
    )
    # A resource that uploads code, or a role, would need more than this file.
    resources = read_document(ROOT / "functions" / "watching.yaml")["Resources"].values()
    assert not [
        of for of in resources if of["Type"].startswith(("AWS::Serverless", "AWS::IAM", "AWS::Lambda"))
    ]


@cache
def variables() -> dict[str, dict[str, Any]]:
    document = hcl2.loads((MODULE / "variables.tf").read_text())
    return {name[1:-1]: body for variable in document["variable"] for name, body in variable.items()}


def test_every_parameter_is_a_variable() -> None:
    """The module has each parameter of the template, except those of what only the template has."""
    parameters = TEMPLATE["Parameters"].keys()
    assert variables().keys() - {"name", "image_uri"} == {snake(name) for name in parameters - LEFT_OUT}
    assert parameters >= LEFT_OUT


@pytest.mark.parametrize("name", sorted(TEMPLATE["Parameters"].keys() - LEFT_OUT))
def test_variable_is_the_parameter(name: str) -> None:
    """It has the parameter's default, description and limits."""
    parameter, mine = TEMPLATE["Parameters"][name], variables()[snake(name)]
    assert mine["type"] == {"String": "string", "Number": "number"}[parameter["Type"]]
    assert written(mine["default"]) == json.dumps(parameter["Default"])
    description = " ".join(parameter["Description"].split())
    for other in TEMPLATE["Parameters"]:
        if len(re.findall("[A-Z]", other)) > 1:
            description = re.sub(rf"\b{other}\b", snake(other), description)
    assert json.loads(mine["description"]) == description
    conditions = [written(rule["condition"]) for rule in mine.get("validation", [])]
    for condition in limits(f"var.{snake(name)}", parameter):
        assert written(f"${{{condition}}}") in conditions


def limits(of: str, parameter: dict[str, Any]) -> Iterator[str]:
    """Conditions of a variable that allow what the parameter allows."""
    if "AllowedValues" in parameter:
        yield f"contains({expression(parameter['AllowedValues'])},{of})"
    if pattern := parameter.get("AllowedPattern"):
        whole = pattern if pattern.startswith("^") else f"^{pattern}$"
        yield f"can(regex({json.dumps(whole)},{of}))"
    bounds = [
        f"{of}{sign}{parameter[key]}"
        for key, sign in (("MinValue", ">="), ("MaxValue", "<="))
        if key in parameter
    ]
    if bounds:
        yield "&&".join(bounds)
    if "MaxLength" in parameter:
        yield f"length({of})<={parameter['MaxLength']}"


def test_a_changed_template_is_seen() -> None:
    """Another default, property or statement makes another expression: the tests above can fail."""
    table = of_template("CacheTable")
    changed = dict(
        leaves({**TEMPLATE["Resources"]["CacheTable"]["Properties"], "BillingMode": "PROVISIONED"})
    )
    assert {path for path in table if table[path] != changed[path]} == {"BillingMode"}
    policy = TEMPLATE["Resources"]["CacheBucketPolicy"]["Properties"]["PolicyDocument"]
    assert expression(policy) != expression(policy | {"Statement": []})


with_terraform = pytest.mark.skipif(shutil.which("terraform") is None, reason="no terraform")
# Without a file of settings on this machine, and without a question about it.
ENVIRON = {**os.environ, "TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}


@with_terraform
def test_module_is_formatted() -> None:
    """`terraform fmt` changes nothing."""
    formatted = subprocess.run(
        ["terraform", "fmt", "-check", "-diff", str(MODULE)], capture_output=True, text=True, env=ENVIRON
    )
    assert (formatted.returncode, formatted.stdout) == (0, "")


@with_terraform
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, ""),
        ({"auth_mode": "JWT", "jwt_issuer": "https://example.com/", "jwt_audience": "coldframe"}, ""),
        ({"auth_mode": "JWT"}, "auth_mode JWT needs jwt_issuer"),
        ({"jwt_audience": "coldframe"}, "no other auth_mode takes it"),
        ({"memory_size": "100"}, "memory_size must be from 512 to 10240"),
        ({"cold_start_mode": "Hot"}, "cold_start_mode must be one of"),
        ({"cors_allow_origin": "example.com/path"}, "cors_allow_origin must be empty"),
        ({"provisioned_concurrency_min": "9"}, "provisioned_concurrency_max must not be less"),
        ({"name": "Cold Frame"}, "name must begin with a letter"),
    ],
)
def test_wrong_variables_are_refused(tmp_path: Path, values: dict[str, str], words: str) -> None:
    """Terraform itself refuses them while it plans, and takes the right ones."""
    shutil.copy(MODULE / "variables.tf", tmp_path)
    arguments = [f"-var={name}={value}" for name, value in {"image_uri": "1.dkr.ecr/x", **values}.items()]
    planned = subprocess.run(
        ["terraform", f"-chdir={tmp_path}", "plan", "-no-color", "-input=false", *arguments],
        capture_output=True, text=True, env=ENVIRON,
    )  # fmt: skip
    assert (planned.returncode == 0) == (not words), planned.stderr
    assert words in " ".join(planned.stderr.replace("│", " ").split())
