"""What CloudFormation would create of template.yaml and its applications, in each mode."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coldframe.coldstart.express import open_lane
from local.template.cloudformation import Stack, load_stack
from tests import stacks
from tests.conftest import ROOT
from tests.stacks import (
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
ALL: list[dict[str, str]] = [{}, PROVISIONED, SNAPSTART, WARMED, JWT, OPEN, WATCHED, FORGETFUL]


@pytest.mark.parametrize("parameters", [PROVISIONED, SNAPSTART, {**WARMED, **JWT, **WATCHED}, FORGETFUL])
def test_translation_does_not_depend_on_parameters(parameters: dict[str, str]) -> None:
    """SAM makes the same stack whether it knows the parameters or CloudFormation fills them in afterwards."""
    assert load_stack(TEMPLATE, parameters).resources == stack(**parameters).resources


# What each mode adds: it is there when the condition holds, and costs nothing otherwise.

ONLY_IN = {
    "Provisioned": PROVISIONED,  # ProvisionedConcurrencyTarget and -Policy
    "WatchingSpilloverAlarm": PROVISIONED,
    "Warmer": WARMED,
    "WatchingAlarmTopic": WATCHED,
}


@pytest.mark.parametrize("parameters", ALL)
def test_what_is_not_asked_for_is_not_there(parameters: dict[str, str]) -> None:
    """Scaling, warmer and topic exist with the parameter that asks for them; all else exists always."""
    found = set(stack(**parameters).resources)
    optional = {prefix: {name for name in found if name.startswith(prefix)} for prefix in ONLY_IN}
    assert {prefix for prefix, names in optional.items() if names} == {
        prefix for prefix, asking in ONLY_IN.items() if asking == parameters
    }
    assert found - set().union(*optional.values()) == set(stack().resources)


@pytest.mark.parametrize("mode", MODES)
def test_what_excludes_each_other_never_meets(mode: str) -> None:
    """Environments come from one source in each mode, and provisioned concurrency never meets a weight."""
    made = stack(**MODES[mode])
    snapshots = properties(made, "PredictFunction")["SnapStart"]["ApplyOn"] == "PublishedVersions"
    provisioned = "ProvisionedConcurrencyConfig" in properties(made, PREDICT_ALIAS)
    assert (snapshots, provisioned) == (mode == "SnapStart", mode == "Provisioned")
    shift = properties(made, "PredictFunctionDeploymentGroup")["DeploymentConfigName"]
    assert (shift == "CodeDeployDefault.LambdaAllAtOnce") == provisioned


def test_traffic_shift_is_a_choice() -> None:
    """The chosen kind of traffic shift is the one that CodeDeploy is told, by the name that it knows."""
    made = load_stack(TEMPLATE, {"TrafficShift": "Linear10PercentEvery3Minutes"})
    group = properties(made, "PredictFunctionDeploymentGroup")
    assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaLinear10PercentEvery3Minutes"


def test_scaling_is_about_the_alias_that_requests_call() -> None:
    """What is scaled is `live`, once it is there; environments of another qualifier would get no request."""
    made = stack(**PROVISIONED)
    target = made.resources["ProvisionedConcurrencyTarget"]
    function, alias = made.resources[target["DependsOn"]]["Properties"]["FunctionName"]["Ref"], "live"
    assert target["Properties"]["ResourceId"] == {"Fn::Sub": f"function:${{{function}}}:{alias}"}
    assert properties(made, target["DependsOn"])["Name"] == alias


def test_scaling_starts_from_what_a_deployment_sets() -> None:
    """A deployment provisions the minimum, so that it takes no environment away that scaling must keep."""
    made = stack(ProvisionedConcurrencyMin="2", ProvisionedConcurrencyMax="9", **PROVISIONED)
    target = properties(made, "ProvisionedConcurrencyTarget")
    set_by_deployment = properties(made, PREDICT_ALIAS)["ProvisionedConcurrencyConfig"]
    assert set_by_deployment["ProvisionedConcurrentExecutions"] == target["MinCapacity"] == "2"
    assert target["MaxCapacity"] == "9"


def test_scaling_leaves_environments_for_what_comes_meanwhile() -> None:
    """Scaling begins before all environments are busy: at 1.0 it would begin after the first cold start."""
    policy = properties(stack(**PROVISIONED), "ProvisionedConcurrencyPolicy")
    tracking = policy["TargetTrackingScalingPolicyConfiguration"]
    metric = tracking["PredefinedMetricSpecification"]["PredefinedMetricType"]
    assert metric == "LambdaProvisionedConcurrencyUtilization"
    assert 0.5 <= tracking["TargetValue"] < 1
    assert policy["ScalingTargetId"] == {"Ref": "ProvisionedConcurrencyTarget"}


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


def test_every_request_goes_to_the_alias() -> None:
    """The one route is the default one; it calls `live`, which API Gateway may invoke, and nothing else."""
    made = stack()
    [(path, methods)] = properties(made, "HttpApi")["Body"]["paths"].items()
    [(method, route)] = methods.items()
    assert (path, method, route["isDefaultRoute"]) == ("/$default", "x-amazon-apigateway-any-method", True)
    integration = route["x-amazon-apigateway-integration"]
    [_, called] = integration["uri"]["Fn::Sub"]
    assert list(called.values()) == [{"Ref": PREDICT_ALIAS}]
    permission = properties(made, "PredictFunctionAnyRoutePermission")
    assert permission["FunctionName"] == {"Ref": PREDICT_ALIAS}
    assert permission["Principal"] == "apigateway.amazonaws.com"


def test_function_ends_before_the_api_stops_waiting() -> None:
    """A slow request ends in the function's own log, not only in a 503 of the API."""
    made = stack()
    integration = json.dumps(properties(made, "HttpApi")["Body"])
    [timeout_ms] = re.findall(r'"timeoutInMillis": (\d+)', integration)
    assert properties(made, "PredictFunction")["Timeout"] * 1000 < int(timeout_ms) <= 30_000


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
    hooks = [update[f"{when}AllowTrafficHook"]["Ref"] for when in ("Before", "After")]
    assert [made.folders[hook].name for hook in hooks] == ["pre_traffic", "post_traffic"]
    group = properties(made, update["DeploymentGroupName"]["Ref"])
    watched = [alarm["Name"]["Ref"] for alarm in group["AlarmConfiguration"]["Alarms"]]
    assert group["AlarmConfiguration"]["Enabled"]
    assert {properties(made, alarm)["MetricName"] for alarm in watched} == {"Errors", "Duration"}
    assert group["AutoRollbackConfiguration"]["Enabled"]
    assert {"DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM"} <= set(
        group["AutoRollbackConfiguration"]["Events"]
    )


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


@pytest.mark.parametrize(
    "changed",
    [{"ProvisionedConcurrencyMax": "9"}, WARMED, JWT, WATCHED, FORGETFUL, {"ReservedConcurrency": "7"}],
)
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
    hook = properties(made, "DeploymentPreTrafficFunction")["Environment"]["Variables"]
    assert hook == {"NEW_VERSION": {"Ref": version}, "WARM_ENVIRONMENTS": 2}
    warmed = properties(stack(**WARMED), "DeploymentPreTrafficFunction")["Environment"]["Variables"]
    assert warmed["WARM_ENVIRONMENTS"] == "5"


def test_deployment_alarms_watch_the_new_version_only() -> None:
    """Errors of the version before must not stop the deployment that repairs it."""
    made = stack()
    [version] = made.of_type("AWS::Lambda::Version")
    for name in ("DeploymentNewVersionErrorsAlarm", "DeploymentNewVersionLatencyAlarm"):
        dimensions = {d["Name"]: d["Value"] for d in properties(made, name)["Dimensions"]}
        assert dimensions == {
            "FunctionName": {"Ref": "PredictFunction"},
            "Resource": {"Fn::Sub": "${PredictFunction}:live"},
            "ExecutedVersion": {"Fn::GetAtt": [version, "Version"]},
        }


# The warmer.


def test_warmer_is_called_before_environments_are_gone() -> None:
    """The schedule comes twice in the ten minutes that an idle environment was seen to live, and may call."""
    made = stack(**WARMED)
    rule = properties(made, "WarmerFunctionEveryFiveMinutes")
    [minutes] = re.findall(r"^rate\((\d+) minutes\)$", rule["ScheduleExpression"])
    assert int(minutes) * 2 <= 10
    assert [target["Arn"] for target in rule["Targets"]] == [{"Fn::GetAtt": ["WarmerFunction", "Arn"]}]
    permission = properties(made, "WarmerFunctionEveryFiveMinutesPermission")
    assert permission["SourceArn"] == {"Fn::GetAtt": ["WarmerFunctionEveryFiveMinutes", "Arn"]}
    # A round that waited longer than this meets the next one.
    late_s = properties(made, "WarmerFunctionEventInvokeConfig")["MaximumEventAgeInSeconds"]
    assert late_s <= int(minutes) * 60


def test_warmer_pings_the_alias_that_requests_call() -> None:
    """The warmer is told the function, the alias and the number."""
    made = stack(**WARMED)
    assert properties(made, "WarmerFunction")["Environment"]["Variables"] == {
        "FUNCTION_NAME": {"Ref": "PredictFunction"},
        "ALIAS": properties(made, PREDICT_ALIAS)["Name"],
        "WARM_ENVIRONMENTS": "5",
    }


# Data.


@pytest.mark.parametrize(
    ("policy", "of", "actions"),
    [("CacheBucketPolicy", "CacheBucket", "s3:*"), ("FailedEventsPolicy", "FailedEvents", "sqs:*")],
)
def test_data_is_given_over_tls_only(policy: str, of: str, actions: str) -> None:
    """Whoever asks bucket or queue without TLS is refused; the policies let nobody in."""
    found = properties(stack(), policy)
    assert {"Ref": of} in (found.get("Bucket"), *found.get("Queues", []))
    [statement] = found["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", actions)
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert {"Fn::GetAtt": [of, "Arn"]} in (statement["Resource"], *statement["Resource"])


@pytest.mark.parametrize("parameters", ALL)
def test_everything_goes_with_the_stack(parameters: dict[str, str]) -> None:
    """No data and no logs stay behind when the stack is deleted; versions go with their function."""
    made = stack(**parameters)
    stays = {name for name, found in made.resources.items() if found.get("DeletionPolicy") == "Retain"}
    assert stays == set(made.of_type("AWS::Lambda::Version"))


# Events that failed.

FAILED_EVENTS = {"Fn::GetAtt": ["FailedEvents", "Arn"]}
SENDS = [{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": FAILED_EVENTS}]
CODEDEPLOY_WAITS_S = 3600  # docs/decisions/0028-failed-events.md


def sending(made: Stack, function: str) -> list[dict[str, Any]]:
    """What the role of a function says of SQS."""
    role = properties(made, function)["Role"]["Fn::GetAtt"][0]
    statements = [s for p in properties(made, role)["Policies"] for s in p["PolicyDocument"]["Statement"]]
    return [statement for statement in statements if "sqs:" in json.dumps(statement["Action"])]


def invoke_configs(made: Stack) -> dict[str, dict[str, Any]]:
    """How asynchronous events are handled, by function."""
    configs = made.of_type("AWS::Lambda::EventInvokeConfig").values()
    return {config["FunctionName"]["Ref"]: config for config in configs}


@pytest.mark.parametrize("mode", MODES)
def test_failed_events_are_kept(mode: str) -> None:
    """Events of each function that fail go to the one queue; its own role may send to it, and no more."""
    made = stack(**MODES[mode], **(WARMED if mode == "OnDemand" else {}))
    configs = invoke_configs(made)
    assert set(configs) == set(made.of_type("AWS::Lambda::Function"))
    for function, config in configs.items():
        assert config["DestinationConfig"] == {"OnFailure": {"Destination": FAILED_EVENTS}}
        assert sending(made, function) == SENDS
        # What calls $LATEST of the predict function, or a version of it, is a test.
        assert config["Qualifier"] == ("live" if function == "PredictFunction" else "$LATEST")
    assert made.resources["PredictEventInvokeConfig"]["DependsOn"] == PREDICT_ALIAS


def test_only_requests_are_tried_again() -> None:
    """A request is tried three times; a round of pings and a hook once, and a hook while CodeDeploy waits."""
    for function, config in invoke_configs(stack(**WARMED)).items():
        assert config["MaximumRetryAttempts"] == (2 if function == "PredictFunction" else 0)
        assert config["MaximumEventAgeInSeconds"] <= CODEDEPLOY_WAITS_S


def test_texts_need_not_be_kept() -> None:
    """Without KeepFailedEvents those of the predict function, which hold texts, go nowhere; others do."""
    made, keeping = stack(**FORGETFUL, **WARMED), stack(**WARMED)
    kept = invoke_configs(keeping)
    for function, config in invoke_configs(made).items():
        if function == "PredictFunction":
            assert config == {
                key: value for key, value in kept[function].items() if key != "DestinationConfig"
            }
            assert sending(made, function) == []
        else:
            assert config == kept[function]
            assert sending(made, function) == SENDS


def test_queue_takes_what_lambda_sends() -> None:
    """The queue takes the largest asynchronous event (1 MB), encrypted, and keeps it as long as SQS can."""
    queue = properties(stack(), "FailedEvents")
    assert queue["MaximumMessageSize"] == 1_048_576
    assert queue["MessageRetentionPeriod"] == 14 * 86_400
    assert queue["SqsManagedSseEnabled"]


# Watching.

# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-functions-metrics.html, read 2026-11-21
METRICS = {
    "AWS/Lambda": {"Duration", "Errors", "ProvisionedConcurrencySpilloverInvocations", "Throttles"},
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible"},
}
DIMENSIONS: dict[str, dict[str, Any]] = {
    # Of the alias: without Resource, requests of tests to $LATEST would count.
    "AWS/Lambda": {
        "FunctionName": {"Ref": "PredictFunction"},
        "Resource": {"Fn::Sub": "${PredictFunction}:live"},
    },
    "AWS/SQS": {"QueueName": {"Fn::GetAtt": ["FailedEvents", "QueueName"]}},
}


def alarms(**parameters: str) -> dict[str, dict[str, Any]]:
    """Those that call somebody, in mode Provisioned, which has the most."""
    found = stack(**PROVISIONED, **parameters).of_type("AWS::CloudWatch::Alarm")
    return {name: alarm for name, alarm in found.items() if name.startswith("Watching")}


def test_alarms_watch_metrics_that_there_are() -> None:
    """An alarm of a metric or a dimension that CloudWatch does not have would stay silent for ever."""
    of_reports = properties(stack(), "WatchingInitDurationMetric")["MetricTransformations"]
    own = {(metric["MetricNamespace"], metric["MetricName"]) for metric in of_reports}
    for alarm in alarms().values():
        namespace = alarm["Namespace"]
        if namespace.startswith("AWS/"):
            assert alarm["MetricName"] in METRICS[namespace]
            found = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
            assert found == DIMENSIONS[namespace]
        else:
            assert (namespace, alarm["MetricName"]) in own


def test_alarms_are_silent_without_traffic() -> None:
    """No data is no alarm, and one slow request among few is none either."""
    for alarm in alarms().values():
        assert alarm["TreatMissingData"] == "notBreaching"
        is_percentile = "ExtendedStatistic" in alarm
        assert alarm.get("EvaluateLowSampleCountPercentile") == ("ignore" if is_percentile else None)


def test_alarms_write_to_the_address() -> None:
    """With an address every alarm writes when it goes off and when it is over; without one it only shows."""
    topic = [{"Ref": "WatchingAlarmTopic"}]
    assert all(alarm["AlarmActions"] == alarm["OKActions"] == topic for alarm in alarms(**WATCHED).values())
    assert not any({"AlarmActions", "OKActions"} & set(alarm) for alarm in alarms().values())


def test_alarms_say_what_to_do() -> None:
    """docs/deploy.md has a line for every alarm, and for none that there is not."""
    table = (ROOT / "docs" / "deploy.md").read_text().partition("## What watches")[2]
    documented = set(re.findall(r"^\| `(\w+Alarm)`", table, re.MULTILINE))
    assert {name.removeprefix("Watching") for name in alarms()} == documented


def test_failure_that_harms_nobody_wakes_nobody() -> None:
    """Nothing watches the shared cache: when it fails, answers are computed instead."""
    assert "CacheTable" not in json.dumps(alarms())


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
    made = properties(stack(), "WatchingInitDurationMetric")
    assert filtered(made["FilterPattern"], line) == REPORTS[line]
    assert made["LogGroupName"] == {"Ref": "PredictLogGroup"}
    [metric] = made["MetricTransformations"]
    alarm = properties(stack(), "WatchingInitAlarm")
    assert (metric["MetricNamespace"], metric["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
    assert metric["MetricValue"] == "$init_ms"


def test_dashboard_shows_this_stack() -> None:
    """The dashboard is JSON, and whatever it shows is a resource of this stack, in the stack's region."""
    body = properties(stack(), "WatchingDashboard")["DashboardBody"]["Fn::Sub"]
    widgets = json.loads(body)["widgets"]
    assert all(widget["properties"]["region"] == "us-east-1" for widget in widgets)
    named = set(re.findall(r"\$\{([\w.]+)\}", body))
    assert {name.partition(".")[0] for name in named} <= set(stack().resources)


# Parameters that do not go together.

WRONG = [
    ("JwtHasAnIssuer", {"AuthMode": "JWT", "JwtAudience": "coldframe"}),
    ("JwtHasAnIssuer", {"AuthMode": "JWT", "JwtIssuer": "https://example.com/"}),
    ("IssuerMeansJwt", {"JwtIssuer": "https://example.com/"}),
    ("IssuerMeansJwt", {"JwtAudience": "coldframe", "AuthMode": "None"}),
    ("PingsAreForOnDemand", {**PROVISIONED, **WARMED}),
    ("PingsAreForOnDemand", {**SNAPSTART, **WARMED}),
    ("ColdStartMode", {"ColdStartMode": "Warm"}),
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
