"""What CloudFormation would create of template.yaml, property by property, in each mode."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coldframe.coldstart.express import open_lane
from local.template.cloudformation import Stack, load_stack
from tests import stacks
from tests.stacks import (
    BUSY,
    FORGETFUL,
    JWT,
    OPEN,
    PROVISIONED,
    SNAPSTART,
    TEMPLATE,
    WARMED,
    WATCHED,
    properties,
    stack,
)

pytestmark = stacks.needs_translator

PREDICT_ALIAS = "PredictFunctionAliaslive"
MODES: dict[str, dict[str, str]] = {"OnDemand": {}, "Provisioned": PROVISIONED, "SnapStart": SNAPSTART}
ALL: list[dict[str, str]] = [{}, PROVISIONED, BUSY, SNAPSTART, WARMED, JWT, OPEN, WATCHED, FORGETFUL]


@pytest.mark.parametrize("parameters", [BUSY, SNAPSTART, {**WARMED, **JWT, **WATCHED}, FORGETFUL])
def test_translation_does_not_depend_on_parameters(parameters: dict[str, str]) -> None:
    """SAM makes the same stack whether it knows the parameters or CloudFormation fills them in afterwards."""
    assert load_stack(TEMPLATE, parameters).resources == stack(**parameters).resources


# What each mode adds.

ONLY_IN = {
    "ProvisionedConcurrencyTarget": [PROVISIONED, BUSY],
    "ProvisionedConcurrencyPolicy": [PROVISIONED, BUSY],
    "SpilloverAlarm": [PROVISIONED, BUSY],
    "WarmerFunction": [WARMED],
    "WarmerRole": [WARMED],
    "WarmerLogGroup": [WARMED],
    "WarmerFunctionEveryFiveMinutes": [WARMED],
    "WarmerFunctionEveryFiveMinutesPermission": [WARMED],
    "WarmerFunctionEventInvokeConfig": [WARMED],
    "AlarmTopic": [WATCHED],
    "Budget": [WATCHED],
}


def test_modes_differ_in_these_resources_only() -> None:
    """A resource exists in the modes that need it; everything else exists in all of them."""
    everywhere = set(stack().resources)
    assert not everywhere & set(ONLY_IN)
    for parameters in ALL:
        expected = {name for name, modes in ONLY_IN.items() if parameters in modes}
        assert set(stack(**parameters).resources) == everywhere | expected


@pytest.mark.parametrize(
    ("mode", "snapstart", "provisioned", "shift"),
    [
        ("OnDemand", "None", None, "CodeDeployDefault.LambdaCanary10Percent5Minutes"),
        ("Provisioned", "None", {"ProvisionedConcurrentExecutions": 1}, "CodeDeployDefault.LambdaAllAtOnce"),
        ("SnapStart", "PublishedVersions", None, "CodeDeployDefault.LambdaCanary10Percent5Minutes"),
    ],
)
def test_mode(mode: str, snapstart: str, provisioned: dict[str, int] | None, shift: str) -> None:
    """SnapStart, provisioned concurrency and weights never meet; each is where its mode puts it."""
    made = stack(**MODES[mode])
    assert properties(made, "PredictFunction")["SnapStart"] == {"ApplyOn": snapstart}
    assert properties(made, PREDICT_ALIAS).get("ProvisionedConcurrencyConfig") == provisioned
    assert properties(made, "PredictFunctionDeploymentGroup")["DeploymentConfigName"] == shift


def test_traffic_shift_is_a_choice() -> None:
    """The chosen kind of traffic shift is the one that CodeDeploy is told, by the name that it knows."""
    made = load_stack(TEMPLATE, {"TrafficShift": "Linear10PercentEvery3Minutes"})
    group = properties(made, "PredictFunctionDeploymentGroup")
    assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaLinear10PercentEvery3Minutes"


def test_provisioned_concurrency_is_scaled_on_the_alias() -> None:
    """Between its bounds, provisioned concurrency follows its utilization; the alias is there first."""
    made = stack(ProvisionedConcurrencyMin="2", ProvisionedConcurrencyMax="9", **PROVISIONED)
    target = made.resources["ProvisionedConcurrencyTarget"]
    assert target["DependsOn"] == PREDICT_ALIAS
    assert target["Properties"] == {
        "ServiceNamespace": "lambda",
        "ScalableDimension": "lambda:function:ProvisionedConcurrency",
        "ResourceId": {"Fn::Sub": "function:${PredictFunction}:live"},
        "MinCapacity": "2",
        "MaxCapacity": "9",
    }
    assert properties(made, "ProvisionedConcurrencyPolicy") == {
        "PolicyName": "utilization",
        "PolicyType": "TargetTrackingScaling",
        "ScalingTargetId": {"Ref": "ProvisionedConcurrencyTarget"},
        "TargetTrackingScalingPolicyConfiguration": {
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "LambdaProvisionedConcurrencyUtilization"
            },
            "TargetValue": 0.7,
        },
    }


def test_busy_hours() -> None:
    """In busy hours the minimum is higher, and afterwards what it was."""
    start, end = properties(stack(**BUSY), "ProvisionedConcurrencyTarget")["ScheduledActions"]
    assert start == {
        "ScheduledActionName": "busy-hours-start",
        "Schedule": "cron(0 7 ? * MON-FRI *)",
        "Timezone": "Europe/Berlin",
        "ScalableTargetAction": {"MinCapacity": "3", "MaxCapacity": 4},
    }
    assert end == {
        "ScheduledActionName": "busy-hours-end",
        "Schedule": "cron(0 19 ? * MON-FRI *)",
        "Timezone": "Europe/Berlin",
        "ScalableTargetAction": {"MinCapacity": 1, "MaxCapacity": 4},
    }


@pytest.mark.parametrize("parameters", [{}, SNAPSTART, {"LogLevel": "off", "CachePolicy": "off"}])
def test_settings_leave_the_express_lane_open(parameters: dict[str, str], bundle: Path) -> None:
    """With the template's variables a cold environment answers before it is loaded."""
    variables = properties(stack(**parameters), "PredictFunction")["Environment"]["Variables"]
    environ = {name: value if isinstance(value, str) else "a-name" for name, value in variables.items()}
    assert open_lane({**environ, "COLDFRAME_MODEL_DIR": str(bundle)}) is not None


@pytest.mark.parametrize("given", ["", "0", "1000"])
def test_l1_cache(given: str) -> None:
    """The size of the cache in memory is the function's business unless a number is given."""
    variables = properties(stack(L1CacheBytes=given), "PredictFunction")["Environment"]["Variables"]
    assert variables.get("COLDFRAME_L1_CACHE_BYTES", "") == given


@pytest.mark.parametrize("given", ["", "7"])
def test_reserved_concurrency(given: str) -> None:
    """Nothing is reserved unless a number is given."""
    function = properties(stack(ReservedConcurrency=given), "PredictFunction")
    assert function.get("ReservedConcurrentExecutions") == (given or None)


# The API.


def test_api_calls_the_alias() -> None:
    """The one route is the default one; its integration and the one permission are about the alias."""
    made = stack()
    [(path, methods)] = properties(made, "HttpApi")["Body"]["paths"].items()
    [(method, route)] = methods.items()
    assert (path, method, route["isDefaultRoute"]) == ("/$default", "x-amazon-apigateway-any-method", True)
    integration = route["x-amazon-apigateway-integration"]
    assert integration == {
        "type": "aws_proxy",
        "httpMethod": "POST",
        "payloadFormatVersion": "2.0",
        "timeoutInMillis": 30000,
        "uri": {
            "Fn::Sub": [
                "arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/${Live}/invocations",
                {"Live": {"Ref": PREDICT_ALIAS}},
            ]
        },
    }
    permission = properties(made, "PredictFunctionAnyRoutePermission")
    assert permission["FunctionName"] == {"Ref": PREDICT_ALIAS}
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert permission["Action"] == "lambda:InvokeFunction"


IAM_SCHEME = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "x-amazon-apigateway-authtype": "awsSigv4",
}


@pytest.mark.parametrize(
    ("parameters", "security", "scheme"),
    [
        ({}, [{"Callers": []}], IAM_SCHEME),
        (
            JWT,
            [{"Callers": []}],
            {
                "type": "oauth2",
                "x-amazon-apigateway-authorizer": {
                    "type": "jwt",
                    "identitySource": "$request.header.Authorization",
                    "jwtConfiguration": {"issuer": "https://example.com/", "audience": ["coldframe"]},
                },
            },
        ),
        (OPEN, None, IAM_SCHEME),
    ],
    ids=["IAM", "JWT", "None"],
)
def test_who_gets_in(
    parameters: dict[str, str], security: list[dict[str, Any]] | None, scheme: dict[str, Any]
) -> None:
    """Every route asks for what AuthMode says; only None asks for nothing."""
    body = properties(stack(**parameters), "HttpApi")["Body"]
    found = [method.get("security") for path in body["paths"].values() for method in path.values()]
    assert found == [security]
    assert body["components"]["securitySchemes"] == {"Callers": scheme}


def test_cors_is_off_by_default() -> None:
    """No page of another origin may call the API unless one is named."""
    assert "x-amazon-apigateway-cors" not in properties(stack(), "HttpApi")["Body"]
    cors = properties(stack(**OPEN), "HttpApi")["Body"]["x-amazon-apigateway-cors"]
    assert cors["allowOrigins"] == ["https://example.com"]
    assert "allowCredentials" not in cors


def test_stage_throttles_and_logs() -> None:
    """The default stage limits rate and burst, and logs each request without who sent it or what."""
    stage = properties(stack(ThrottleRate="5", ThrottleBurst="6"), "HttpApiApiGatewayDefaultStage")
    assert stage["StageName"] == "$default"
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": "5",
        "ThrottlingBurstLimit": "6",
        "DetailedMetricsEnabled": True,
    }
    log = stage["AccessLogSettings"]
    assert log["DestinationArn"] == {"Fn::GetAtt": ["ApiLogGroup", "Arn"]}
    named = set(re.findall(r"\$context\.([A-Za-z.]+)", log["Format"]))
    assert not {name for name in named if re.search("identity|authorizer|path|query|message$", name)}
    # `messageString` comes with its quotes; everything else is put between ours.
    filled = re.sub(
        r"\$context\.[A-Za-z.]+", "x", log["Format"].replace("$context.error.messageString", '""')
    )
    assert set(json.loads(filled)) >= {"requestId", "status", "latencyMs", "functionRequestId"}


# Deployments.


def test_deployments_are_verified_and_can_roll_back() -> None:
    """Before traffic shifts one function verifies, afterwards another prunes; alarms and failures go back."""
    made = stack()
    update = made.resources[PREDICT_ALIAS]["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
    assert update == {
        "ApplicationName": {"Ref": "ServerlessDeploymentApplication"},
        "DeploymentGroupName": {"Ref": "PredictFunctionDeploymentGroup"},
        "BeforeAllowTrafficHook": {"Ref": "PreTrafficFunction"},
        "AfterAllowTrafficHook": {"Ref": "PostTrafficFunction"},
    }
    group = properties(made, "PredictFunctionDeploymentGroup")
    assert group["AlarmConfiguration"] == {
        "Enabled": True,
        "Alarms": [{"Name": {"Ref": "NewVersionErrorsAlarm"}}, {"Name": {"Ref": "NewVersionLatencyAlarm"}}],
    }
    assert group["AutoRollbackConfiguration"] == {
        "Enabled": True,
        "Events": ["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_STOP_ON_REQUEST"],
    }
    assert group["ServiceRoleArn"] == {"Fn::GetAtt": ["DeploymentRole", "Arn"]}


def description(**parameters: str) -> str:
    """Of the version that these parameters publish."""
    [version] = stack(**parameters).of_type("AWS::Lambda::Version").values()
    found: str = version["Description"]
    return found


@pytest.mark.parametrize(
    "changed",
    [
        {"MemorySize": "3008"},
        {"L1CacheBytes": "0"},
        {"CachePolicy": "off"},
        {"LogLevel": "off"},
        SNAPSTART,
    ],
)
def test_a_version_is_published_when_the_function_changes(changed: dict[str, str]) -> None:
    """What shapes the function is in the version's description, which makes it another version."""
    assert description(**changed) != description()


@pytest.mark.parametrize("changed", [BUSY, WARMED, JWT, WATCHED, FORGETFUL, {"ReservedConcurrency": "7"}])
def test_no_version_is_published_when_it_does_not(changed: dict[str, str]) -> None:
    """Lambda refuses to publish what has not changed, so the description must not change either."""
    assert description(**changed) == description()
    function = properties(stack(**changed), "PredictFunction")
    # Reserved concurrency belongs to the function and to no version.
    function.pop("ReservedConcurrentExecutions", None)
    assert function == properties(stack(), "PredictFunction")


def test_versions_stay_to_go_back_to() -> None:
    """Neither new code nor a changed parameter makes CloudFormation delete the version before."""
    [version] = [r for r in stack().resources.values() if r["Type"] == "AWS::Lambda::Version"]
    assert (version["DeletionPolicy"], version["UpdateReplacePolicy"]) == ("Retain", "Retain")
    # The function itself goes when the stack goes.
    assert "DeletionPolicy" not in stack().resources["PredictFunction"]


def test_the_hook_knows_the_new_version() -> None:
    """The hook that verifies is told the version of this deployment, not the alias and not $LATEST."""
    made = stack()
    [version] = made.of_type("AWS::Lambda::Version")
    hook = properties(made, "PreTrafficFunction")["Environment"]["Variables"]
    assert hook == {"NEW_VERSION": {"Ref": version}, "WARM_ENVIRONMENTS": 2}
    warmed = properties(stack(**WARMED), "PreTrafficFunction")["Environment"]["Variables"]
    assert warmed["WARM_ENVIRONMENTS"] == "5"


def test_deployment_alarms_watch_the_new_version_only() -> None:
    """Errors of the version before must not stop the deployment that repairs it."""
    made = stack()
    [version] = made.of_type("AWS::Lambda::Version")
    for name in ("NewVersionErrorsAlarm", "NewVersionLatencyAlarm"):
        dimensions = {d["Name"]: d["Value"] for d in properties(made, name)["Dimensions"]}
        assert dimensions == {
            "FunctionName": {"Ref": "PredictFunction"},
            "Resource": {"Fn::Sub": "${PredictFunction}:live"},
            "ExecutedVersion": {"Fn::GetAtt": [version, "Version"]},
        }


# The warmer.


def test_warmer_runs_every_five_minutes() -> None:
    """The schedule calls the warmer, may do so, and does not repeat a round that failed."""
    made = stack(**WARMED)
    rule = properties(made, "WarmerFunctionEveryFiveMinutes")
    assert rule["ScheduleExpression"] == "rate(5 minutes)"
    assert [target["Arn"] for target in rule["Targets"]] == [{"Fn::GetAtt": ["WarmerFunction", "Arn"]}]
    permission = properties(made, "WarmerFunctionEveryFiveMinutesPermission")
    assert permission["FunctionName"] == {"Ref": "WarmerFunction"}
    assert permission["SourceArn"] == {"Fn::GetAtt": ["WarmerFunctionEveryFiveMinutes", "Arn"]}
    assert properties(made, "WarmerFunctionEventInvokeConfig")["MaximumRetryAttempts"] == 0
    assert properties(made, "WarmerFunction")["Environment"]["Variables"] == {
        "FUNCTION_NAME": {"Ref": "PredictFunction"},
        "ALIAS": "live",
        "WARM_ENVIRONMENTS": "5",
    }


# Data.


def test_table() -> None:
    """The table is billed per request, forgets, can be restored, and is encrypted."""
    table = properties(stack(), "CacheTable")
    assert table == {
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "cache_key", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "cache_key", "KeyType": "HASH"}],
        "TimeToLiveSpecification": {"AttributeName": "expires_at_s", "Enabled": True},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "SSESpecification": {"SSEEnabled": True},
    }


def test_bucket_answers_over_tls_only() -> None:
    """Whoever asks without TLS is refused, for the bucket and everything in it."""
    policy = properties(stack(), "CacheBucketPolicy")
    assert policy["Bucket"] == {"Ref": "CacheBucket"}
    [statement] = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert statement["Resource"] == [
        {"Fn::GetAtt": ["CacheBucket", "Arn"]},
        {"Fn::Sub": "${CacheBucket.Arn}/*"},
    ]


# Events that failed.

# configuration: (function, role, qualifier, attempts after the first, age in seconds)
EVENTS = {
    "PredictEventInvokeConfig": ("PredictFunction", "PredictRole", "live", 2, 3600),
    "WarmerFunctionEventInvokeConfig": ("WarmerFunction", "WarmerRole", "$LATEST", 0, 300),
    "PreTrafficFunctionEventInvokeConfig": ("PreTrafficFunction", "PreTrafficRole", "$LATEST", 0, 3600),
    "PostTrafficFunctionEventInvokeConfig": ("PostTrafficFunction", "PostTrafficRole", "$LATEST", 0, 3600),
}
FAILED_EVENTS = {"Fn::GetAtt": ["FailedEvents", "Arn"]}
SENDS = [{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": FAILED_EVENTS}]


def sending(made: Stack, role: str) -> list[dict[str, Any]]:
    """What a role says of SQS."""
    statements = [s for p in properties(made, role)["Policies"] for s in p["PolicyDocument"]["Statement"]]
    return [statement for statement in statements if "sqs:" in json.dumps(statement["Action"])]


@pytest.mark.parametrize("mode", MODES)
def test_failed_events_are_kept(mode: str) -> None:
    """Events of each function that fail go to the one queue; its own role may send to it, and no more."""
    made = stack(**MODES[mode], **(WARMED if mode == "OnDemand" else {}))
    configs = made.of_type("AWS::Lambda::EventInvokeConfig")
    assert set(configs) == set(EVENTS) - (
        set() if mode == "OnDemand" else {"WarmerFunctionEventInvokeConfig"}
    )
    assert len(configs) == len(made.of_type("AWS::Lambda::Function"))
    for name, config in configs.items():
        function, role, qualifier, attempts, age_s = EVENTS[name]
        assert config == {
            "FunctionName": {"Ref": function},
            "Qualifier": qualifier,
            "MaximumRetryAttempts": attempts,
            "MaximumEventAgeInSeconds": age_s,
            "DestinationConfig": {"OnFailure": {"Destination": FAILED_EVENTS}},
        }
        assert sending(made, role) == SENDS
    assert made.resources["PredictEventInvokeConfig"]["DependsOn"] == PREDICT_ALIAS


def test_texts_need_not_be_kept() -> None:
    """Without KeepFailedEvents those of the predict function, which hold texts, go nowhere; others do."""
    made = stack(**FORGETFUL, **WARMED)
    config = properties(made, "PredictEventInvokeConfig")
    assert "DestinationConfig" not in config
    assert (config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]) == (2, 3600)
    assert sending(made, "PredictRole") == []
    for name in EVENTS.keys() - {"PredictEventInvokeConfig"}:
        assert properties(made, name) == properties(stack(**WARMED), name)
        assert sending(made, EVENTS[name][1]) == SENDS


def test_queue_keeps_what_it_gets_to_itself() -> None:
    """It is encrypted, takes the largest event, keeps it as long as SQS can, and goes with the stack."""
    queue = stack().resources["FailedEvents"]
    assert queue["Properties"] == {
        "SqsManagedSseEnabled": True,
        "MaximumMessageSize": 1_048_576,
        "MessageRetentionPeriod": 14 * 86_400,
    }
    assert (queue["DeletionPolicy"], queue["UpdateReplacePolicy"]) == ("Delete", "Delete")


def test_queue_answers_over_tls_only() -> None:
    """Whoever asks without TLS is refused; nobody is let in who has no permission of their own."""
    policy = properties(stack(), "FailedEventsPolicy")
    assert policy["Queues"] == [{"Ref": "FailedEvents"}]
    assert policy["PolicyDocument"]["Statement"] == [
        {
            "Sid": "OnlyOverTls",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": FAILED_EVENTS,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    ]


# Watching.

# alarm: (namespace, metric, statistic, threshold, dimensions)
ALIAS_DIMENSIONS = {
    "FunctionName": {"Ref": "PredictFunction"},
    "Resource": {"Fn::Sub": "${PredictFunction}:live"},
}
TABLE_DIMENSIONS = {"TableName": {"Ref": "CacheTable"}}
QUEUE_DIMENSIONS = {"QueueName": {"Fn::GetAtt": ["FailedEvents", "QueueName"]}}
ALARMS = {
    "ThrottlesAlarm": ("AWS/Lambda", "Throttles", "Sum", 0, ALIAS_DIMENSIONS),
    "ErrorsAlarm": ("AWS/Lambda", "Errors", "Sum", 0, ALIAS_DIMENSIONS),
    "LatencyAlarm": ("AWS/Lambda", "Duration", "p99", 1000, ALIAS_DIMENSIONS),
    "TableReadThrottlesAlarm": ("AWS/DynamoDB", "ReadThrottleEvents", "Sum", 0, TABLE_DIMENSIONS),
    "TableWriteThrottlesAlarm": ("AWS/DynamoDB", "WriteThrottleEvents", "Sum", 0, TABLE_DIMENSIONS),
    "FailedEventsAlarm": ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", 0, QUEUE_DIMENSIONS),
    "InitAlarm": ("Coldframe/coldframe", "InitDuration", "Maximum", 5000, {}),
    "SpilloverAlarm": (
        "AWS/Lambda",
        "ProvisionedConcurrencySpilloverInvocations",
        "Sum",
        0,
        ALIAS_DIMENSIONS,
    ),
}


@pytest.mark.parametrize("name", ALARMS)
def test_alarm(name: str) -> None:
    """Each alarm watches its metric of the alias; no data is no alarm; it writes to the topic."""
    alarm = properties(stack(**PROVISIONED, **WATCHED), name)
    statistic = alarm.get("Statistic") or alarm.get("ExtendedStatistic")
    dimensions = {d["Name"]: d["Value"] for d in alarm.get("Dimensions", [])}
    found = (alarm["Namespace"], alarm["MetricName"], statistic, alarm["Threshold"], dimensions)
    assert found == ALARMS[name]
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    assert ("EvaluateLowSampleCountPercentile" in alarm) == (statistic == "p99")
    assert alarm["TreatMissingData"] == "notBreaching"
    assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmTopic"}]
    assert "AlarmActions" not in properties(stack(**PROVISIONED), name)


# As they appear in a log; the first two from AWS's documentation of Python functions and of SnapStart:
# https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html,
# https://docs.aws.amazon.com/lambda/latest/dg/snapstart-monitoring.html, read 2026-11-21.
REPORTS = {
    "REPORT RequestId: 8f5\tDuration: 15.74 ms\tBilled Duration: 147 ms\tMemory Size: 128 MB\t"
    "Max Memory Used: 56 MB\tInit Duration: 130.49 ms\t": "130.49",
    "REPORT RequestId: 8f5\tDuration: 115.28 ms\tBilled Duration: 1 ms\tMemory Size: 1769 MB\t"
    "Max Memory Used: 202 MB\tRestore Duration: 500.77 ms\tBilled Restore Duration: 3 ms\t": "500.77",
    "REPORT RequestId: 8f5\tDuration: 15.74 ms\tBilled Duration: 16 ms\tMemory Size: 128 MB\t"
    "Max Memory Used: 56 MB\t": None,
    '{"requestId": "8f5", "status": 200, "start": "cold"}': None,
}


def filtered(pattern: str, line: str) -> str | None:
    """What a space-delimited filter pattern of CloudWatch Logs takes out of a line as `init_ms`.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html, read 2026-11-21
    """
    fields = [field.strip() for field in pattern.strip("[]").split(",")]
    assert fields.pop() == "..."
    words = line.split()
    if len(words) < len(fields):
        return None
    value = None
    for field, word in zip(fields, words, strict=False):
        name, *_ = field.split("=")
        wanted = re.findall(r'="([^"]*)"', field)
        if wanted and word not in wanted:
            return None
        value = word if name == "init_ms" else value
    return value


@pytest.mark.parametrize("line", REPORTS)
def test_init_duration_is_read_from_reports(line: str) -> None:
    """The metric is the duration of an init, or of a restore, of each REPORT line that has one."""
    made = properties(stack(), "InitDurationMetric")
    assert filtered(made["FilterPattern"], line) == REPORTS[line]
    assert made["LogGroupName"] == {"Ref": "PredictLogGroup"}
    [metric] = made["MetricTransformations"]
    alarm = properties(stack(), "InitAlarm")
    assert (metric["MetricNamespace"], metric["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
    assert metric["MetricValue"] == "$init_ms"


def test_dashboard_is_json() -> None:
    """Every widget of the dashboard shows metrics, of this stack's resources."""
    body = properties(stack(), "Dashboard")["DashboardBody"]["Fn::Sub"]
    widgets = json.loads(body)["widgets"]
    assert {widget["properties"]["title"] for widget in widgets} == {
        "Requests",
        "Duration, ms",
        "Cold starts",
        "Environments",
        "Shared cache",
        "Failed events",
    }
    assert all(widget["properties"]["region"] == "us-east-1" for widget in widgets)
    named = {"PredictFunction", "HttpApi", "CacheTable", "FailedEvents.QueueName"}
    assert set(re.findall(r"\$\{([\w.]+)\}", body)) == named


def test_budget_writes_before_it_is_spent() -> None:
    """At 80 % of the sum, and when it is forecast to be passed, the address is written to."""
    budget = properties(stack(**WATCHED), "Budget")
    assert budget["Budget"]["BudgetLimit"] == {"Amount": "20", "Unit": "USD"}
    found = [
        (n["Notification"]["NotificationType"], n["Notification"]["Threshold"], n["Subscribers"])
        for n in budget["NotificationsWithSubscribers"]
    ]
    someone = [{"SubscriptionType": "EMAIL", "Address": "someone@example.com"}]
    assert found == [("ACTUAL", 80, someone), ("FORECASTED", 100, someone)]


# Parameters that do not go together.

WRONG = [
    ("JwtHasAnIssuer", {"AuthMode": "JWT", "JwtAudience": "coldframe"}),
    ("JwtHasAnIssuer", {"AuthMode": "JWT", "JwtIssuer": "https://example.com/"}),
    ("IssuerMeansJwt", {"JwtIssuer": "https://example.com/"}),
    ("IssuerMeansJwt", {"JwtAudience": "coldframe", "AuthMode": "None"}),
    ("BusyHoursHaveBothEnds", {**PROVISIONED, "BusyHoursStart": "cron(0 7 ? * MON-FRI *)"}),
    ("BusyHoursHaveBothEnds", {**PROVISIONED, "BusyHoursEnd": "cron(0 7 ? * MON-FRI *)"}),
    ("BusyHoursHaveBothEnds", {**BUSY, "ColdStartMode": "SnapStart"}),
    ("PingsAreForOnDemand", {**PROVISIONED, **WARMED}),
    ("PingsAreForOnDemand", {**SNAPSTART, **WARMED}),
    ("BudgetHasAnAddress", {"MonthlyBudgetUsd": "20"}),
    ("ColdStartMode", {"ColdStartMode": "Warm"}),
    ("BusyHoursStart", {**BUSY, "BusyHoursStart": "every morning"}),
    ("ProvisionedConcurrencyMin", {"ProvisionedConcurrencyMin": "0"}),
    ("MemorySize", {"MemorySize": "128"}),
    ("MemorySize", {"MemorySize": "10241"}),
    ("Architecture", {"Architecture": "arm"}),
    ("L1CacheBytes", {"L1CacheBytes": "1.5"}),
    ("ReservedConcurrency", {"ReservedConcurrency": "0"}),
    ("ReservedConcurrency", {"ReservedConcurrency": "-1"}),
    ("AuthMode", {"AuthMode": "none"}),
    ("JwtIssuer", {**JWT, "JwtIssuer": "http://example.com"}),
    ("CorsAllowOrigin", {"CorsAllowOrigin": "https://example.com/page"}),
    ("AlarmEmail", {"AlarmEmail": "someone"}),
    ("LogRetentionDays", {"LogRetentionDays": "31"}),
    ("KeptVersions", {"KeptVersions": "1"}),
    ("WarmEnvironments", {"WarmEnvironments": "51"}),
    ("TrafficShift", {"TrafficShift": "Canary10Percent"}),
    ("KeepFailedEvents", {"KeepFailedEvents": "true"}),
]


@pytest.mark.parametrize(("name", "parameters"), WRONG)
def test_wrong_parameters_are_refused_before_anything_is_created(
    name: str, parameters: dict[str, str]
) -> None:
    """Constraints and rules of the template turn down what cannot work, and nothing else."""
    refusals = stack(**parameters).refusals
    assert {refusal.name for refusal in refusals} == {name}
    assert all(refusal.reason for refusal in refusals)


@pytest.mark.parametrize("parameters", ALL)
def test_right_parameters_are_not_refused(parameters: dict[str, str]) -> None:
    """Every mode is accepted."""
    assert stack(**parameters).refusals == ()


def test_every_rule_of_the_template_is_tested() -> None:
    """Each rule of the template is broken by some case above."""
    assert set(stacks.documents()["written"]["Rules"]) <= {name for name, _ in WRONG}
