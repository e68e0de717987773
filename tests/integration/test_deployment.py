"""The stack with its nested ones, deployed with boto3 to another project's CloudFormation, and read back.

ministack lacks CodeDeploy, Application Auto Scaling and alarms on expressions, and refuses a template that
names them: those are taken out here. It drops some properties without a word: the body and the throttling
of an API; expiry, encryption and recovery of a table; the lifecycle of a bucket. `test_services.py` gives
those of the data to moto.
"""

import io
import json
import os
import socket
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest

from coldframe_local.paths import SAM_PYTHON
from tests.conftest import ROOT
from tests.support import stacks
from tests.support.stacks import TEMPLATE, WARMED, WATCHED

MINISTACK = ROOT / ".venv-ministack" / "bin" / "ministack"
NAME, AS_ONE, REGION = "coldframe", "coldframe-as-one", "us-east-1"
CREDENTIALS = {"aws_access_key_id": "an-id", "aws_secret_access_key": "not-for-any-log"}
MISSING = ("AWS::CodeDeploy::", "AWS::ApplicationAutoScaling::")
NESTED = "AWS::CloudFormation::Stack"
UPLOADED = "uploaded-by"

pytestmark = [
    pytest.mark.containers,
    *stacks.needs_translator,
    pytest.mark.skipif(not MINISTACK.exists(), reason="no .venv-ministack: run `make .venv-ministack/stamp`"),
]


@dataclass
class Deployed:
    """The stack in the emulator. ids: physical ids by logical id, with the application's name first."""

    url: str
    ids: dict[str, str]
    outputs: dict[str, str]

    def client(self, service: str) -> Any:
        return boto3.client(service, endpoint_url=self.url, region_name=REGION, **CREDENTIALS)


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the emulator, in a process of its own, with nothing in it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("ministack")
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
    }  # fmt: skip
    process = subprocess.Popen(
        [MINISTACK], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert any("Running on" in line for line in process.stdout), "ministack did not start"
    url = f"http://127.0.0.1:{port}"
    with process:
        yield url
        process.kill()


@cache
def translated(path: Path) -> dict[str, Any]:
    """One of the templates by itself, as `sam deploy` sends it."""
    script = ROOT / "local" / "coldframe_local" / "emulator" / "template" / "syntax" / "translate.py"
    done = subprocess.run([SAM_PYTHON, script, path], capture_output=True, check=True, text=True)
    application = "" if path == TEMPLATE else path.stem.title()
    return sendable(json.loads(done.stdout)["translated"], application)


def is_missing(resource: dict[str, Any]) -> bool:
    """Whether ministack refuses the resource: by its kind, or as an alarm on an expression."""
    return resource["Type"].startswith(MISSING) or "Metrics" in resource.get("Properties", {})


def sendable(template: dict[str, Any], application: str = "") -> dict[str, Any]:
    """A translated template less what the emulator does not have; what it names is uploaded below."""
    text = json.dumps(template).replace('{"Ref": "ServerlessDeploymentApplication"}', '"coldframe"')
    changed: dict[str, Any] = json.loads(text.replace("${ServerlessDeploymentApplication}", "coldframe"))
    resources = changed["Resources"]
    for name in [name for name, resource in resources.items() if is_missing(resource)]:
        del resources[name]
    for name, resource in resources.items():
        resource.pop("UpdatePolicy", None)
        properties = resource.get("Properties", {})
        if "S3Key" in properties.get("Code", {}):
            properties["Code"]["S3Key"] = application + name
        elif resource["Type"] == "AWS::Lambda::LayerVersion":
            properties["Content"]["S3Key"] = application + without_hash(name)
        elif resource["Type"] == NESTED:
            properties["TemplateURL"] = f"https://s3.amazonaws.com/{UPLOADED}/{properties['TemplateURL']}"
    return changed


HASHED = ("AWS::Lambda::LayerVersion", "AWS::Lambda::Version")


def without_hash(name: str) -> str:
    """The name of a layer or a version without the ten digits of a hash that SAM adds."""
    return name[:-10]


def upload(s3: Any) -> None:
    """What `sam deploy` puts into a bucket: the applications, and the folders that they name."""
    s3.create_bucket(Bucket=UPLOADED)
    for name in stacks.APPLICATIONS:
        path = ROOT / "functions" / f"{name}.yaml"
        s3.put_object(Bucket=UPLOADED, Key=f"functions/{path.name}", Body=json.dumps(translated(path)))
    for name, folder in stacks.stack(**WARMED).folders.items():
        s3.put_object(Bucket=UPLOADED, Key=name, Body=zipped(folder))


def zipped(folder: Path) -> bytes:
    """A folder as `sam deploy` uploads it: links are followed."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for file in folder.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.writestr(str(file.relative_to(folder)), file.read_bytes())
    return memory.getvalue()


def deploy(
    found: "Deployed", action: str, stack: str, template: dict[str, Any], **parameters: str
) -> dict[str, Any]:
    """Creates or updates the stack from S3, as `sam deploy` does; returns its description."""
    client = found.client("cloudformation")
    key = f"{stack}.template"
    found.client("s3").put_object(Bucket=UPLOADED, Key=key, Body=json.dumps(template))
    getattr(client, f"{action}_stack")(
        StackName=stack,
        TemplateURL=f"https://s3.amazonaws.com/{UPLOADED}/{key}",
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()],
    )
    client.get_waiter(f"stack_{action}_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})
    described: dict[str, Any] = client.describe_stacks(StackName=stack)["Stacks"][0]
    return described


def physical_ids(client: Any, stack: str, before: str = "") -> Iterator[tuple[str, str]]:
    """(logical id, physical id) of what is in a stack and in those that are nested in it."""
    for resource in client.list_stack_resources(StackName=stack)["StackResourceSummaries"]:
        name, physical = resource["LogicalResourceId"], resource["PhysicalResourceId"]
        if resource["ResourceType"] == NESTED:
            yield from physical_ids(client, physical, before + name)
        else:
            is_hashed = resource["ResourceType"] in HASHED
            yield before + (without_hash(name) if is_hashed else name), physical


@pytest.fixture(scope="module")
def deployed(ministack: str) -> Deployed:
    """The stack with a warmer and an address for alarms."""
    found = Deployed(ministack, {}, {})
    upload(found.client("s3"))
    return created(found, NAME, translated(TEMPLATE))


@pytest.fixture(scope="module")
def deployed_as_one(deployed: Deployed) -> Deployed:
    """The same without nesting: ministack forgets what a nested stack has when it updates it."""
    whole = sendable(stacks.documents()["translated"])
    return created(Deployed(deployed.url, {}, {}), AS_ONE, whole)


def created(found: Deployed, stack: str, template: dict[str, Any]) -> Deployed:
    """Creates a stack; returns what is in it."""
    client = found.client("cloudformation")
    described = deploy(found, "create", stack, template, **WARMED, **WATCHED)
    found.outputs = {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}
    found.ids = dict(physical_ids(client, stack))
    return found


def test_everything_is_created(deployed: Deployed) -> None:
    """Every resource is there that emulator and check see, but for the kinds that ministack lacks."""
    made = stacks.stack(**WARMED, **WATCHED)
    hashed = {name for kind in HASHED for name in made.of_type(kind)}
    assert set(deployed.ids) == {
        without_hash(name) if name in hashed else name
        for name, resource in made.resources.items()
        if not is_missing(resource)
    }


def test_predict_function(deployed: Deployed) -> None:
    """An image function with the real names of its table and bucket, published and behind `live`."""
    client = deployed.client("lambda")
    function = client.get_function(FunctionName=deployed.ids["PredictFunction"])["Configuration"]
    assert (function["PackageType"], function["MemorySize"], function["Timeout"]) == ("Image", 1769, 29)
    assert function["Architectures"] == ["arm64"]
    variables = function["Environment"]["Variables"]
    assert variables["COLDFRAME_CACHE_TABLE"] == deployed.outputs["CacheTableName"]
    assert variables["COLDFRAME_CACHE_BUCKET"] == deployed.outputs["CacheBucketName"]
    alias = client.get_alias(FunctionName=deployed.ids["PredictFunction"], Name="live")
    assert (alias["FunctionVersion"], alias["AliasArn"]) == ("1", deployed.outputs["PredictFunctionAliasArn"])


def test_only_the_api_may_invoke_the_alias(deployed: Deployed) -> None:
    """The resource policy of the alias names API Gateway and this API."""
    client = deployed.client("lambda")
    policy = client.get_policy(FunctionName=deployed.ids["PredictFunction"], Qualifier="live")["Policy"]
    [statement] = json.loads(policy)["Statement"]
    assert statement["Principal"] == {"Service": "apigateway.amazonaws.com"}
    assert f":{deployed.ids['HttpApi']}/" in json.dumps(statement["Condition"])


def test_api(deployed: Deployed) -> None:
    """The API has one stage, which is the default one and logs to the group of the stack."""
    client, api = deployed.client("apigatewayv2"), deployed.ids["HttpApi"]
    [stage] = client.get_stages(ApiId=api)["Items"]
    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)
    assert f":{deployed.ids['ApiLogGroup']}" in stage["AccessLogSettings"]["DestinationArn"]
    assert api in deployed.outputs["ApiUrl"]


def test_table(deployed: Deployed) -> None:
    """The table is on demand and has the key of the cache."""
    client, name = deployed.client("dynamodb"), deployed.outputs["CacheTableName"]
    table = client.describe_table(TableName=name)["Table"]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["KeySchema"] == [{"AttributeName": "cache_key", "KeyType": "HASH"}]


def test_bucket(deployed: Deployed) -> None:
    """The bucket is encrypted, private, and answers over TLS only."""
    client, name = deployed.client("s3"), deployed.outputs["CacheBucketName"]
    [encryption] = client.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]["Rules"]
    assert encryption["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert all(client.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"].values())
    [statement] = json.loads(client.get_bucket_policy(Bucket=name)["Policy"])["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Resource"] == [f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*"]


def test_queue(deployed: Deployed) -> None:
    """The queue is encrypted, keeps messages for 14 days, and answers over TLS only."""
    client, url = deployed.client("sqs"), deployed.outputs["FailedEventsUrl"]
    found = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (found["MessageRetentionPeriod"], found["MaximumMessageSize"]) == ("1209600", "1048576")
    assert found["SqsManagedSseEnabled"] == "true"
    [statement] = json.loads(found["Policy"])["Statement"]
    assert (statement["Effect"], statement["Resource"]) == ("Deny", found["QueueArn"])


def test_failed_events_go_to_the_queue(deployed: Deployed) -> None:
    """Alias and functions have the queue for a destination, and their roles may send to it and no further."""
    url = deployed.outputs["FailedEventsUrl"]
    attributes = deployed.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    arn = attributes["Attributes"]["QueueArn"]
    client, iam = deployed.client("lambda"), deployed.client("iam")
    names = {"Predict": "live", "Warmer": None, "DeploymentPreTraffic": None, "DeploymentPostTraffic": None}
    for name, alias in names.items():
        config = client.get_function_event_invoke_config(
            FunctionName=deployed.ids[f"{name}Function"], Qualifier=alias or "$LATEST"
        )
        assert config["DestinationConfig"]["OnFailure"]["Destination"] == arn
        assert config["MaximumRetryAttempts"] == (2 if alias else 0)
        policy = iam.get_role_policy(RoleName=deployed.ids[f"{name}Role"], PolicyName="KeepFailedEvents")
        [statement] = policy["PolicyDocument"]["Statement"]
        assert (statement["Action"], statement["Resource"]) == ("sqs:SendMessage", arn)


def test_logs_are_kept_for_thirty_days(deployed: Deployed) -> None:
    """Every log group of the stack has the retention that was asked for."""
    groups = deployed.client("logs").describe_log_groups()["logGroups"]
    names = {name for logical, name in deployed.ids.items() if logical.endswith("LogGroup")}
    assert {group["logGroupName"]: group.get("retentionInDays") for group in groups} == dict.fromkeys(
        names, 30
    )


def test_alarms_write_to_the_topic(deployed: Deployed) -> None:
    """Every alarm but those of deployments writes to the topic, which has the address."""
    alarms = deployed.client("cloudwatch").describe_alarms()["MetricAlarms"]
    quiet = {deployed.ids[f"DeploymentNewVersion{of}Alarm"] for of in ("Errors", "Latency")}
    topic = deployed.ids["WatchingAlarmTopic"]
    for alarm in alarms:
        assert alarm["AlarmActions"] == ([] if alarm["AlarmName"] in quiet else [topic])
    assert {alarm["AlarmName"] for alarm in alarms} == {
        name for logical, name in deployed.ids.items() if logical.endswith("Alarm")
    }
    subscriptions = deployed.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert [(s["Protocol"], s["Endpoint"]) for s in subscriptions] == [("email", "someone@example.com")]


def test_dashboard(deployed: Deployed) -> None:
    """The dashboard names the function, the API and the table as they are called now."""
    name = deployed.ids["WatchingDashboard"]
    assert deployed.outputs["DashboardUrl"].endswith(f"dashboard/{name}")
    body = deployed.client("cloudwatch").get_dashboard(DashboardName=name)["DashboardBody"]
    widgets = json.dumps(json.loads(body)["widgets"])
    for logical in ("PredictFunction", "HttpApi", "CacheTable"):
        assert deployed.ids[logical] in widgets
    assert deployed.outputs["FailedEventsUrl"].rpartition("/")[2] in widgets


def test_schedule_calls_the_warmer(deployed: Deployed) -> None:
    """The rule is enabled, runs every five minutes, and calls the warmer."""
    client = deployed.client("events")
    rule = client.describe_rule(Name=deployed.ids["WarmerFunctionEveryFiveMinutes"])
    assert (rule["State"], rule["ScheduleExpression"]) == ("ENABLED", "rate(5 minutes)")
    [target] = client.list_targets_by_rule(Rule=rule["Name"])["Targets"]
    assert target["Arn"].endswith(f":function:{deployed.ids['WarmerFunction']}")


def test_roles_may_do_what_the_template_says(deployed: Deployed) -> None:
    """Every policy names its actions and, but for metrics, resources that exist now."""
    client = deployed.client("iam")
    for logical, name in deployed.ids.items():
        if not logical.endswith("Role"):
            continue
        assert client.list_attached_role_policies(RoleName=name)["AttachedPolicies"] == []
        for policy in client.list_role_policies(RoleName=name)["PolicyNames"]:
            document = client.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
            for statement in document["Statement"]:
                assert "*" not in json.dumps(statement["Action"])
                assert "${" not in json.dumps(statement["Resource"])
                assert statement["Resource"] != "*" or statement["Action"] == "cloudwatch:GetMetricStatistics"


def test_a_changed_parameter_is_a_new_version(deployed_as_one: Deployed) -> None:
    """Another memory size publishes a version, and `live` points to it."""
    whole = sendable(stacks.documents()["translated"])
    deploy(deployed_as_one, "update", AS_ONE, whole, **WARMED, **WATCHED, MemorySize="3008")
    client, name = deployed_as_one.client("lambda"), deployed_as_one.ids["PredictFunction"]
    assert client.get_function(FunctionName=name)["Configuration"]["MemorySize"] == 3008
    alias = client.get_alias(FunctionName=name, Name="live")
    assert alias["FunctionVersion"] == "2"
    hook = client.get_function(FunctionName=deployed_as_one.outputs["PreTrafficFunctionName"])[
        "Configuration"
    ]
    assert hook["Environment"]["Variables"]["NEW_VERSION"].endswith(":2")


def test_pruning_runs_as_it_was_deployed(deployed_as_one: Deployed) -> None:
    """The function that prunes, from the zip and the layer that were uploaded, deletes what it should."""
    client, name = deployed_as_one.client("lambda"), deployed_as_one.ids["PredictFunction"]
    for memory_mb in (1000, 1001, 1002):
        client.update_function_configuration(FunctionName=name, MemorySize=memory_mb)
        client.publish_version(FunctionName=name)
    response = client.invoke(FunctionName=deployed_as_one.ids["DeploymentPostTrafficFunction"], Payload=b"{}")
    report = json.loads(response["Payload"].read())
    assert report == {"deleted": ["1"], "kept": ["2", "3", "4", "5"]}
    found = client.list_versions_by_function(FunctionName=name)["Versions"]
    assert [entry["Version"] for entry in found] == ["$LATEST", "2", "3", "4", "5"]


def test_event_that_fails_is_in_the_queue(deployed: Deployed) -> None:
    """What a deployed function cannot handle, here no JSON object, is read from the queue with boto3."""
    name, url = deployed.ids["DeploymentPostTrafficFunction"], deployed.outputs["FailedEventsUrl"]
    answer = deployed.client("lambda").invoke(FunctionName=name, InvocationType="Event", Payload=b"7")
    assert (answer["StatusCode"], answer["Payload"].read()) == (202, b"")
    [message] = deployed.client("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    record = json.loads(message["Body"])
    assert record["requestContext"]["condition"] == "RetriesExhausted"
    assert f":function:{name}" in record["requestContext"]["functionArn"]
    assert record["requestPayload"] == 7
    assert record["responseContext"]["functionError"] == "Unhandled"


@pytest.mark.usefixtures("deployed_as_one")
def test_removing_leaves_nothing(deployed: Deployed) -> None:
    """After a stack is deleted, its table, bucket, queue, logs and functions are gone."""
    client = deployed.client("cloudformation")
    for stack in (NAME, AS_ONE):
        client.delete_stack(StackName=stack)
        client.get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})
    assert deployed.client("dynamodb").list_tables()["TableNames"] == []
    assert [b["Name"] for b in deployed.client("s3").list_buckets()["Buckets"]] == [UPLOADED]
    assert deployed.client("sqs").list_queues().get("QueueUrls", []) == []
    assert deployed.client("logs").describe_log_groups()["logGroups"] == []
    assert deployed.client("lambda").list_functions()["Functions"] == []
