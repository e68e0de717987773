"""Properties that the emulator ignores because no part of it reads them, and the effect.

`coldframe_local.emulator.template.syntax.properties` remembers which properties it reads. So a property that
AWS adds tomorrow is named as well. Properties that change nothing on this machine are not named: `_HARMLESS`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.ref_names import (
    BUCKET,
    EVENT_INVOKE_CONFIG,
    EVENT_SOURCE_MAPPING,
    FUNCTION,
    HTTP_API,
    LAYER,
    PLAIN_FUNCTION,
    PLAIN_LAYER,
    QUEUE,
    REST_API,
    RULE,
    SCHEDULE,
    SIMPLE_TABLE,
    SUBSCRIPTION_FILTER,
    TABLE,
)
from coldframe_local.emulator.template.syntax.resources import Resources
from coldframe_local.emulator.template.syntax.template_warnings import Effect, Note

_READ_TYPES = frozenset(
    {
        BUCKET, EVENT_INVOKE_CONFIG, EVENT_SOURCE_MAPPING, FUNCTION, HTTP_API, PLAIN_FUNCTION, QUEUE,
        REST_API, RULE, SCHEDULE, SIMPLE_TABLE, SUBSCRIPTION_FILTER, TABLE,
    }
)  # fmt: skip
_GENERIC = "it is not read on this machine"

# Labels, permissions, keys, retention, deployment: nothing that a function can notice here.
_HARMLESS: Mapping[str, frozenset[str]] = {
    "": frozenset({"Tags", "Description", "PropagateTags", "KmsKeyArn", "KmsMasterKeyId", "Policy"}),
    "Function": frozenset(
        {
            "AssumeRolePolicyDocument", "AutoPublishAliasAllProperties", "AutoPublishCodeSha256",
            "CodeSigningConfigArn", "DeploymentPreference", "LoggingConfig.LogGroup", "PermissionsBoundary",
            "Policies", "Role", "RolePath", "RuntimeManagementConfig", "SourceKMSKeyArn",
            "VersionDeletionPolicy", "VersionDescription",
        }
    ),
    "HttpApi": frozenset({"AccessLogSettings", "FailOnWarnings", "Name"}),
    "Api": frozenset(
        {
            "AccessLogSetting", "AlwaysDeploy", "EndpointConfiguration", "FailOnWarnings", "Mode", "Models",
            "Name", "OpenApiVersion", "SecurityPolicy",
        }
    ),
    "Table": frozenset(
        {
            "BillingMode", "ContributorInsightsSpecification", "DeletionProtectionEnabled",
            "PointInTimeRecoverySpecification", "ResourcePolicy", "SSESpecification", "TableClass",
        }
    ),
    "SimpleTable": frozenset({"PointInTimeRecoverySpecification", "SSESpecification"}),
    "Bucket": frozenset(
        {
            "AccessControl", "AnalyticsConfigurations", "BucketEncryption",
            "IntelligentTieringConfigurations", "InventoryConfigurations", "LifecycleConfiguration",
            "LoggingConfiguration", "MetricsConfigurations", "OwnershipControls",
            "PublicAccessBlockConfiguration",
        }
    ),
    "Queue": frozenset({"KmsDataKeyReusePeriodSeconds", "RedriveAllowPolicy", "SqsManagedSseEnabled"}),
    "EventInvokeConfig": frozenset(),
    "EventSourceMapping": frozenset({"MetricsConfig"}),
    "Rule": frozenset({"RoleArn"}),
    "Schedule": frozenset({"FlexibleTimeWindow", "GroupName"}),
    "SubscriptionFilter": frozenset({"Distribution", "RoleArn"}),
}  # fmt: skip

# What a value means to be on AWS as if it were not there.
_OFF: Mapping[str, frozenset[str]] = {
    "EphemeralStorage.Size": frozenset({"512"}),
    "MergeDefinitions": frozenset({"false"}),
    "RecursiveLoop": frozenset({"Terminate"}),
    "Tracing": frozenset({"PassThrough", "Disabled"}),
    "TracingConfig.Mode": frozenset({"PassThrough"}),
    "TracingEnabled": frozenset({"false"}),
    "CacheClusterEnabled": frozenset({"false"}),
    "DisableExecuteApiEndpoint": frozenset({"false"}),
}

# By the longest beginning of the path.
_WHY: Mapping[str, Mapping[str, str]] = {
    "Function": {
        "CapacityProviderConfig": "functions run on this machine",
        "DeadLetterConfig": "a failed event goes to the destination of EventInvokeConfig and nowhere else",
        "DeadLetterQueue": "a failed event goes to the destination of EventInvokeConfig and nowhere else",
        "DurableConfig": "an execution that ends is not taken up again",
        "EphemeralStorage": "the folder for temporary files is this machine's, without a limit",
        "FileSystemConfigs": "no file system is mounted",
        "FunctionScalingConfig": "it scales by reserved and provisioned concurrency alone",
        "FunctionUrlConfig": "the function has no URL here, only its events and the Lambda API",
        "RecursiveLoop": "loops are not looked for",
        "TenancyConfig": "tenants share execution environments",
        "Tracing": "no trace is sent",
        "VpcConfig": "the function is in this machine's network",
    },
    "Api": {
        "ApiKeySourceType": "API keys are not asked for",
        "CacheCluster": "no answer is cached",
        "CanarySetting": "there is one stage",
        "DisableExecuteApiEndpoint": "the API answers at this machine's address",
        "Domain": "the API answers at this machine's address",
        "GatewayResponses": "the gateway's own answers have their default form",
        "MinimumCompressionSize": "answers are not compressed",
        "TracingEnabled": "no trace is sent",
        "Variables": "events have no stage variables",
    },
    "HttpApi": {
        "DisableExecuteApiEndpoint": "the API answers at this machine's address",
        "Domain": "the API answers at this machine's address",
        "StageVariables": "events have no stage variables",
    },
    "Table": {
        "ImportSourceSpecification": "the table begins empty",
        "KinesisStreamSpecification": "changes are sent nowhere",
        "OnDemandThroughput": "the table is never throttled",
        "ProvisionedThroughput": "the table is never throttled",
        "WarmThroughput": "the table is never throttled",
    },
    "SimpleTable": {"ProvisionedThroughput": "the table is never throttled"},
    "Bucket": {"NotificationConfiguration": "no notification about objects is sent"},
    "EventSourceMapping": {"FilterCriteria": "every message is passed on"},
    "Rule": {"EventPattern": "no event is matched"},
}

# Types of which there is nothing on this machine and nothing to say: permissions, watching, deployment.
_QUIET = (
    "AWS::ApplicationAutoScaling::ScalingPolicy", "AWS::Budgets::", "AWS::CDK::Metadata", "AWS::CloudWatch::",
    "AWS::CodeDeploy::", "AWS::IAM::", "AWS::KMS::", "AWS::Lambda::LayerVersionPermission",
    "AWS::Lambda::Permission", "AWS::Lambda::Version", "AWS::Logs::", "AWS::S3::BucketPolicy",
    "AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy", LAYER, PLAIN_LAYER,
)  # fmt: skip
_WHY_NOT_HERE = {
    "AWS::ApiGateway": "only routes of AWS::Serverless::HttpApi and AWS::Serverless::Api are served",
    "AWS::ApplicationAutoScaling::": "provisioned concurrency stays as it is",
    "AWS::Events::": "no event is sent from here; the Lambda API takes them",
    "AWS::Lambda::Alias": "the alias of a function is that of AutoPublishAlias",
    "AWS::Lambda::Url": "the function has no URL here, only its events and the Lambda API",
    "AWS::Scheduler::": "schedules have no groups here",
    "AWS::Serverless::StateMachine": "not started here; `coldframe offline start --local` runs the project's",
    "AWS::Serverless::Application": "name its own template with --template, to run it",
}


def unread(resources: Resources, left_out: Container[str]) -> Iterator[Note]:
    """Ignored properties of all resources, except resources that are `left_out` as a whole.

    To be called after all else has been read.
    """
    for loop in resources.loops():
        yield Note(Effect.LEFT_OUT, loop, "Fn::ForEach is not expanded here. Write its resources out")
    for name, kind in resources.kinds():
        if name in left_out:
            continue
        if kind in _READ_TYPES:
            yield from _properties(resources, name, kind.rpartition("::")[2])
        elif not kind.startswith(_QUIET):
            why = next((why for begin, why in _WHY_NOT_HERE.items() if kind.startswith(begin)), kind)
            yield Note(Effect.NOT_HERE, name, why)


def _properties(resources: Resources, name: str, kind: str) -> Iterator[Note]:
    for path, value in resources.properties(name).unread():
        if not _is_harmless(kind, path):
            for inner, leaf in _leaves(path, value):
                if not _is_harmless(kind, inner) and not _is_off(resources, inner, leaf):
                    yield Note(Effect.IGNORED, f"{name}.{path}", _why(kind, inner))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A map, one property at a time: `LoggingConfig` has some that matter and some that do not."""
    if isinstance(value, dict) and value and not any(str(key).startswith(("Fn::", "Ref")) for key in value):
        yield from ((f"{path}.{key}", inner) for key, inner in value.items())
    else:
        yield path, value


def _is_harmless(kind: str, path: str) -> bool:
    return path in _HARMLESS[kind] or path.rpartition(".")[2] in _HARMLESS[""]


def _is_off(resources: Resources, path: str, value: Any) -> bool:
    try:
        resolved = resources.resolve(value, path)
    except TemplateError:
        return False
    text = str(resolved).lower() if isinstance(resolved, bool) else str(resolved)
    return resolved is None or text in _OFF.get(path, frozenset())


def _why(kind: str, path: str) -> str:
    return next((why for begin, why in _WHY.get(kind, {}).items() if path.startswith(begin)), _GENERIC)
