"""The policies of the template, against the calls to AWS that the code makes: none missing, none too many.

Every call of boto3 is taken down by an event hook of botocore while the real code runs, with its parameters.
What IAM asks for it follows from those: https://docs.aws.amazon.com/service-authorization/latest/reference/,
read 2026-11-21.
"""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

import boto3
import msgspec
import pytest
from moto import mock_aws

from coldframe.api.jobs_routes import open_jobs_routes
from coldframe.api.messages import Request
from coldframe.cache.aws_clients import AwsClients
from coldframe.cache.dynamodb_store import GET_KEYS, ITEM_LIMIT_BYTES, DynamoDbStore
from coldframe.cache.policy import Costs, Policy
from coldframe.cache.s3_store import S3Store
from coldframe.cache.shared import SharedCache
from coldframe.cache.values import Kind, Shapes
from coldframe.coldstart.pings import invoker, ping_environments
from coldframe.config import Settings
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.control import Controller
from coldframe.jobs.services import open_services
from coldframe.jobs.worker import Message, Worker
from coldframe.pipeline.models import Models
from coldframe.timing import Deadline, MovingAverage
from coldframe.warming import dynamodb_record
from coldframe.warming.decision import Guards
from coldframe.warming.policy import HoldCosts
from coldframe.warming.record import Record
from coldframe.warming.round import Clients, run_round
from coldframe.warming.settings import Predicting
from coldframe_bench.targets.faulty_server import FaultyServer
from coldframe_functions.post_traffic import app as post_traffic
from coldframe_functions.pre_traffic import app as pre_traffic
from coldframe_functions.warmer import app as warmer
from tests.conftest import ROOT
from tests.functional.conftest import BUCKET, TABLE
from tests.functional.warming.test_warm_environments import DEPLOYMENT, versions  # noqa: F401 - a fixture
from tests.jobs_proof import Predictor
from tests.support import stacks
from tests.support.dynamodb import JOBS_TABLE, create_jobs_table
from tests.support.jobs_world import POISON, Echo, Faults, Told
from tests.support.lambda_endpoint import VERSION, lambda_endpoint
from tests.support.stacks import GUARANTEED, PREDICTED, WARMED, WITH_JOBS, stack

pytestmark = [pytest.mark.waits, *stacks.needs_translator]

ACCOUNT, REGION, FUNCTION, APPLICATION = "123456789012", "us-east-1", "predict", "deployments"
LAMBDA_ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{FUNCTION}"
# What the resources of the template are called where the code below runs.
ARNS = {
    "PredictFunction.Arn": LAMBDA_ARN,
    "CacheTable.Arn": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}",
    "CacheBucket.Arn": f"arn:aws:s3:::{BUCKET}",
    "JobsWorkerTable.Arn": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{JOBS_TABLE}",
    "JobsWorkerBucket.Arn": "arn:aws:s3:::ours",
    "JobsWorkerQueue.Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:parts",
    "JobsWorkerControlQueue.Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:control",
    "JobsWorkerFailed.Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:failed",
    "JobsWorkerTopic": f"arn:aws:sns:{REGION}:{ACCOUNT}:ended",
    "ServerlessDeploymentApplication": APPLICATION,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
}
# Lines of the log, and events that failed.
OF_LAMBDA = {"WriteLogs", "KeepFailedEvents"}
# Operations that IAM calls otherwise.
ACTIONS = {
    "lambda:Invoke": "lambda:InvokeFunction",
    "s3:HeadObject": "s3:GetObject",
    "sqs:SendMessageBatch": "sqs:SendMessage",
}
# What Lambda does with a role to read a queue.
OF_POLLERS = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
OF_JOBS = {"TakeJobs", "ReadSourcesOfJobs"}  # of the predict function


@dataclass(frozen=True)
class Call:
    """One call as IAM sees it."""

    action: str
    resource: str


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Every call that any client of boto3 makes from now on."""
    found: list[Call] = []
    make = boto3.session.Session.client

    def client(self: Any, service: str, *args: Any, **options: Any) -> Any:
        made = make(self, service, *args, **options)

        def record(params: dict[str, Any], model: Any, **_: Any) -> None:
            action = f"{service}:{model.name}"
            found.append(Call(ACTIONS.get(action, action), resource_of(service, params)))

        made.meta.events.register("provide-client-params", record)
        return made

    monkeypatch.setattr(boto3.session.Session, "client", client)
    return found


def resource_of(service: str, params: dict[str, Any]) -> str:
    """The ARN that a call is about."""
    if service == "dynamodb":
        [table] = params.get("RequestItems") or [params["TableName"]]
        index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
        return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table}{index}"
    if service == "sqs":
        return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{params['QueueUrl'].rpartition('/')[2]}"
    if service == "sns":
        return str(params["TopicArn"])
    if service == "application-autoscaling":  # the target's id, which only Application Auto Scaling knows
        return f"arn:aws:application-autoscaling:{REGION}:{ACCOUNT}:scalable-target/an-id"
    if service == "s3":
        return f"arn:aws:s3:::{params['Bucket']}/{params['Key']}"
    if service == "lambda":
        name = params["FunctionName"]
        function = name if name.startswith("arn:") else f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
        return f"{function}:{params['Qualifier']}" if "Qualifier" in params else function
    if service == "codedeploy":  # the deployment's group, which only CodeDeploy knows
        return f"arn:aws:codedeploy:{REGION}:{ACCOUNT}:deploymentgroup:{APPLICATION}/a-group"
    return "*"


def grants(
    role: str, parameters: dict[str, str] = WARMED, names: frozenset[str] = frozenset()
) -> list[tuple[str, str]]:
    """(action, pattern of resources) that a role allows, but for what Lambda itself does with it.

    names: of the policies; empty: all of them but those of jobs.
    """
    made = stack(**parameters)
    attached = made.of_type("AWS::IAM::RolePolicy").values()
    policies = [
        *stacks.properties(made, role)["Policies"],
        *(policy for policy in attached if policy["RoleName"] == {"Ref": role}),
    ]
    statements = [
        statement
        for policy in policies
        if policy["PolicyName"] in names or (not names and policy["PolicyName"] not in OF_LAMBDA)
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    assert all(statement["Effect"] == "Allow" for statement in statements)
    return [
        (action, pattern_of(resource))
        for statement in statements
        for action in as_list(statement["Action"])
        if action not in OF_POLLERS
        for resource in as_list(statement["Resource"])
    ]


def pattern_of(resource: Any) -> str:
    """A resource of a policy, with the names of this test."""
    match resource:
        case {"Fn::GetAtt": [name, attribute]}:
            return ARNS[f"{name}.{attribute}"]
        case {"Ref": name}:
            return ARNS[name]
        case {"Fn::Sub": [str(text), {"Arn": arn}]}:
            return text.replace("${Arn}", pattern_of(arn))
        case {"Fn::Sub": str(text)}:
            for name, value in ARNS.items():
                text = text.replace(f"${{{name}}}", value)
            assert "${" not in text
            return text
    assert isinstance(resource, str)
    return resource


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def assert_exact(
    role: str,
    calls: list[Call],
    parameters: dict[str, str] = WARMED,
    names: frozenset[str] = frozenset(),
) -> None:
    """Every call is granted, and every grant is used. names: of the policies, as `grants` has them."""
    granted = grants(role, parameters, names)
    assert calls
    missing = {
        call
        for call in calls
        if not any(call.action == action and fnmatchcase(call.resource, arn) for action, arn in granted)
    }
    surplus = {
        (action, arn)
        for action, arn in granted
        if not any(call.action == action and fnmatchcase(call.resource, arn) for call in calls)
    }
    assert (missing, surplus) == (set(), set())


def test_predict_function(store: FaultyServer, calls: list[Call]) -> None:
    """Reads and writes of small values and of large ones: the table's two actions, the bucket's two."""
    clients = AwsClients(timeout_s=60.0)
    costs = Costs(64, GET_KEYS, MovingAverage(0.1))
    table, bucket = DynamoDbStore(TABLE, clients), S3Store(BUCKET, clients)
    shared = SharedCache(table, bucket, costs, Policy.ALWAYS, deadline_s=60.0, ttl_s=1000)
    values = {
        b"small" * 6: (Kind.PREDICTION, bytes(8)),
        b"large" * 6: (Kind.EMBEDDING, bytes(ITEM_LIMIT_BYTES)),
    }
    shapes = Shapes(labels=1, dimension=ITEM_LIMIT_BYTES // 4)
    wanted = {key: kind for key, (kind, _) in values.items()}
    # What was not asked for is not written either.
    assert shared.get_many(wanted, [1, 1], shapes).payloads == {}
    assert shared.put_many(values, time_left_s=60.0).values == 2
    assert shared.get_many(wanted, [1, 1], shapes).payloads == {
        key: payload for key, (_, payload) in values.items()
    }
    clients.close()
    assert_exact("PredictRole", calls)


class Queues:
    """The queues of jobs in moto, emptied by hand as Lambda empties them."""

    def __init__(self) -> None:
        self._sqs = boto3.client("sqs")
        made = ("parts", "control", "failed")
        self.urls = {name: self._sqs.create_queue(QueueName=name)["QueueUrl"] for name in made}

    def receive(self, name: str) -> list[Message]:
        url = self.urls[name]
        found = self._sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for each in found:
            self._sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return [Message(each["MessageId"], each["ReceiptHandle"], each["Body"]) for each in found]


@pytest.fixture
def job_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Settings, Queues]]:
    """Settings of a deployment with jobs, whose resources are moto's."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with mock_aws():
        create_jobs_table(boto3.client("dynamodb"))
        s3, queues = boto3.client("s3"), Queues()
        for bucket, key in (("ours", "uploads/a"), ("theirs", "a"), ("others", "a")):
            s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key=key, Body=b'"text"')
        s3.put_object(Bucket="ours", Key="uploads/spoilt", Body=b"{")
        yield (
            Settings(
                jobs_table=JOBS_TABLE,
                jobs_bucket="ours",
                jobs_sources="theirs,others",
                jobs_queue=queues.urls["parts"],
                jobs_control_queue=queues.urls["control"],
                jobs_failed_queue=queues.urls["failed"],
                jobs_topic=boto3.client("sns").create_topic(Name="ended")["TopicArn"],
                log_level="off",
            ),
            queues,
        )


def test_jobs(job_settings: tuple[Settings, Queues], calls: list[Call]) -> None:
    """Each of the three functions of jobs may do what it does on AWS, and nothing else."""
    settings, queues = job_settings
    models = Models({"m": cast(Any, Predictor())})
    services, echo = open_services(settings), Echo()
    routes = open_jobs_routes(models, settings)
    names = [
        routes.create(Request("POST", "", {}, json.dumps(body).encode()))
        .headers["location"]
        .rpartition("/")[2]
        for body in (
            {"texts": ["text", POISON], "push": {"sns": True}},
            {"texts": ["x" * 250_000], "push": {"sns": True}},
            *(
                {"source": {"s3": f"s3://{uri}", "format": "jsonl"}, "push": {"sns": True}}
                for uri in ("ours/uploads/a", "theirs/a", "others/a", "ours/uploads/spoilt")
            ),
        )
    ]
    taken = len(calls)
    controller = Controller(
        services.store,
        services.objects,
        services.queue,
        services.control,
        services.notifier,
        RetryPolicy(),
        time.time,
        random.random,
    )
    worker = Worker(
        services.store, services.objects, services.queue, services.control, echo, RetryPolicy(), random.random
    )
    deadline = Deadline(60.0)

    for message in queues.receive("control"):
        controller.handle(message, deadline)
    idle = services.store.get(names[2])
    assert idle is not None
    services.store.postpone(idle, 0.0)
    controller.sweep()
    controlled = len(calls)
    messages = queues.receive("parts")
    large = next(each for each in messages if names[1] in each.body)
    missing = msgspec.structs.replace(large, id="missing", body=large.body.replace("texts/", "none/"))
    poison = next(each for each in messages if names[0] in each.body)
    worker.handle([*messages, missing, msgspec.structs.replace(poison, id="again")], deadline)
    answered = len(calls)
    deaf = replace(controller, notifier=Told(Faults(fails=1.0)))
    for message in queues.receive("control"):
        assert not deaf.handle(message, deadline)
        controller.handle(message, deadline)
    told = len(calls)
    for name in names:
        routes.status(Request("GET", "", params={"job": name}))
    mine = [*calls[:taken], *calls[told:]]
    assert_exact("PredictRole", mine, WITH_JOBS, frozenset(OF_JOBS))
    assert_exact("JobsWorkerRole", calls[controlled:answered], WITH_JOBS, frozenset({"AnswerParts"}))
    of_control = [*calls[taken:controlled], *calls[answered:told]]
    assert_exact("JobsWorkerControlRole", of_control, WITH_JOBS, frozenset({"ControlJobs", "ReadSources"}))


def test_warmer(moto: str, aws_environ: dict[str, str], calls: list[Call], bundle: Path) -> None:
    """A round of pings: one look at the metrics, one at the alias, and the version behind it."""
    with lambda_endpoint(bundle) as endpoint:
        client = boto3.client("lambda", endpoint_url=endpoint.url)
        cloudwatch = boto3.client("cloudwatch", endpoint_url=moto)
        warmer.keep_warm(client, cloudwatch, FUNCTION, "live", 2, lambda: datetime.now(UTC))
        client.close()
        cloudwatch.close()
    assert_exact("WarmerRole", calls)


@pytest.mark.parametrize("parameters", [PREDICTED, GUARANTEED])
def test_warmer_that_predicts(
    parameters: dict[str, str], store: FaultyServer, moto: str, calls: list[Call], bundle: Path
) -> None:
    """Its item of the table, one call of CloudWatch, the version; scaling with a guarantee, else release."""
    guards = Guards(least=1, most=3, day_usd=1.0, guaranteed=int(parameters.get("WarmGuaranteed", 0)))
    costs = HoldCosts(1e-6, 1e-3)
    settings = Predicting(FUNCTION, "live", TABLE, guards, costs, costs)
    with lambda_endpoint(bundle) as endpoint:
        endpoint.provisioned = 2
        lambda_client = boto3.client("lambda", endpoint_url=endpoint.url)
        cloudwatch = boto3.client("cloudwatch", endpoint_url=moto)
        dynamodb = boto3.client("dynamodb", endpoint_url=moto)
        scaling = boto3.client("application-autoscaling", endpoint_url=moto)
        dynamodb_record.write(dynamodb, TABLE, FUNCTION, Record(provisioned=2), 0)
        calls.clear()

        def pinged(version: str, count: int) -> dict[str, Any]:
            return ping_environments(invoker(lambda_client, version), count)._asdict()

        run_round(
            Clients(lambda_client, cloudwatch, dynamodb, lambda: scaling, pinged), settings, datetime.now(UTC)
        )
        for client in (lambda_client, cloudwatch, dynamodb, scaling):
            client.close()
    assert_exact("WarmerRole", calls, parameters)


def test_pre_traffic_hook(
    aws_environ: dict[str, str], calls: list[Call], bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verification: the version and nothing else, and the word to CodeDeploy."""
    with lambda_endpoint(bundle) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", endpoint.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_CODEDEPLOY", endpoint.url)
        monkeypatch.setenv("NEW_VERSION", f"{LAMBDA_ARN}:{VERSION}")
        monkeypatch.setenv("WARM_ENVIRONMENTS", "1")
        monkeypatch.setattr(pre_traffic, "GOLDEN", ROOT / "layers" / "golden" / "golden.json")
        report = run_hook(pre_traffic)
    assert report["status"] == "Succeeded"
    assert_exact("DeploymentPreTrafficRole", calls)


def test_post_traffic_hook(
    request: pytest.FixtureRequest,
    moto: str,
    bundle: Path,
    aws_environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pruning: two lists, old versions, and the word to CodeDeploy."""
    request.getfixturevalue("versions")
    calls: list[Call] = request.getfixturevalue("calls")
    with lambda_endpoint(bundle) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", moto)
        monkeypatch.setenv("AWS_ENDPOINT_URL_CODEDEPLOY", endpoint.url)
        monkeypatch.setenv("FUNCTION_NAME", FUNCTION)
        monkeypatch.setenv("KEPT_VERSIONS", "3")
        report = run_hook(post_traffic)
    assert report["deleted"] == ["2", "3"]
    assert_exact("DeploymentPostTrafficRole", calls)


def run_hook(hook: Any) -> dict[str, Any]:
    """A hook as CodeDeploy calls it, with clients of its own."""
    hook._clients.cache_clear()
    report: dict[str, Any] = hook.handler(DEPLOYMENT, None)
    for client in hook._clients():
        client.close()
    hook._clients.cache_clear()
    return report


def test_codedeploy_may_do_what_its_managed_policy_says() -> None:
    """CodeDeploy gets the Lambda part of the policy that AWS wrote for it, about this stack's resources only.

    https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AWSCodeDeployRoleForLambdaLimited.html,
    read 2026-11-21. Its S3 part is about revisions in buckets, its SNS part about triggers: there are none.
    """
    [policy] = stacks.properties(stack(), "DeploymentCodeDeployRole")["Policies"]
    granted = {
        action: statement["Resource"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in as_list(statement["Action"])
    }
    assert set(granted) == {
        "cloudwatch:DescribeAlarms",
        "lambda:GetAlias",
        "lambda:GetProvisionedConcurrencyConfig",
        "lambda:InvokeFunction",
        "lambda:UpdateAlias",
    }
    hooks = ("DeploymentPreTrafficFunction", "DeploymentPostTrafficFunction")
    assert granted["lambda:InvokeFunction"] == [{"Fn::GetAtt": [hook, "Arn"]} for hook in hooks]
    group = stacks.properties(stack(), "PredictFunctionDeploymentGroup")
    alarms = [alarm["Name"]["Ref"] for alarm in group["AlarmConfiguration"]["Alarms"]]
    assert granted["cloudwatch:DescribeAlarms"] == [{"Fn::GetAtt": [alarm, "Arn"]} for alarm in alarms]
