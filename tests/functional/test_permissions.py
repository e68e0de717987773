"""The policies of the template, against the calls to AWS that the code makes: none missing, none too many.

Every call of boto3 is taken down by an event hook of botocore while the real code runs, with its parameters.
What IAM asks for it follows from those: https://docs.aws.amazon.com/service-authorization/latest/reference/,
read 2026-11-21.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import boto3
import pytest

from bench.targets.faulty_server import FaultyServer
from coldframe.cache.aws_clients import AwsClients
from coldframe.cache.dynamodb_store import GET_KEYS, ITEM_LIMIT_BYTES, DynamoDbStore
from coldframe.cache.policy import Costs, Policy
from coldframe.cache.s3_store import S3Store
from coldframe.cache.shared import SharedCache
from coldframe.cache.values import Kind, Shapes
from coldframe.coldstart.pings import invoker, ping_environments
from coldframe.timing import MovingAverage
from coldframe.warming import table
from coldframe.warming.hold import Clients, hold
from coldframe.warming.policy import HoldCosts
from coldframe.warming.record import Record
from coldframe.warming.rounds import Guards
from coldframe.warming.settings import Predicting
from functions.post_traffic import app as post_traffic
from functions.pre_traffic import app as pre_traffic
from functions.warmer import app as warmer
from tests import stacks
from tests.conftest import ROOT
from tests.functional.conftest import BUCKET, TABLE
from tests.functional.lambda_door import VERSION, lambda_door
from tests.functional.test_warm_environments import DEPLOYMENT, versions  # noqa: F401 - a fixture
from tests.stacks import GUARANTEED, PREDICTED, WARMED, stack

pytestmark = stacks.needs_translator

ACCOUNT, REGION, FUNCTION, APPLICATION = "123456789012", "us-east-1", "predict", "deployments"
LAMBDA_ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{FUNCTION}"
# What the resources of the template are called where the code below runs.
ARNS = {
    "PredictFunction.Arn": LAMBDA_ARN,
    "CacheTable.Arn": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}",
    "CacheBucket.Arn": f"arn:aws:s3:::{BUCKET}",
    "ServerlessDeploymentApplication": APPLICATION,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
}
# Lines of the log, and events that failed.
OF_LAMBDA = {"WriteLogs", "KeepFailedEvents"}
# Operations that IAM calls otherwise.
ACTIONS = {"lambda:Invoke": "lambda:InvokeFunction"}


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
        return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table}"
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


def grants(role: str, parameters: dict[str, str] = WARMED) -> list[tuple[str, str]]:
    """(action, pattern of resources) that a role allows, but for what Lambda itself does with it."""
    policies = stacks.properties(stack(**parameters), role)["Policies"]
    statements = [
        statement
        for policy in policies
        if policy["PolicyName"] not in OF_LAMBDA
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    assert all(statement["Effect"] == "Allow" for statement in statements)
    return [
        (action, pattern_of(resource))
        for statement in statements
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    ]


def pattern_of(resource: Any) -> str:
    """A resource of a policy, with the names of this test."""
    match resource:
        case {"Fn::GetAtt": [name, attribute]}:
            return ARNS[f"{name}.{attribute}"]
        case {"Fn::Sub": str(text)}:
            for name, value in ARNS.items():
                text = text.replace(f"${{{name}}}", value)
            assert "${" not in text
            return text
    assert isinstance(resource, str)
    return resource


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def assert_exact(role: str, calls: list[Call], parameters: dict[str, str] = WARMED) -> None:
    """Every call is granted, and every grant is used."""
    granted = grants(role, parameters)
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


def test_warmer(moto: str, aws_environ: dict[str, str], calls: list[Call], bundle: Path) -> None:
    """A round of pings: one look at the metrics, one at the alias, and the version behind it."""
    with lambda_door(bundle) as door:
        client = boto3.client("lambda", endpoint_url=door.url)
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
    with lambda_door(bundle) as door:
        door.provisioned = 2
        lambda_client = boto3.client("lambda", endpoint_url=door.url)
        cloudwatch = boto3.client("cloudwatch", endpoint_url=moto)
        dynamodb = boto3.client("dynamodb", endpoint_url=moto)
        scaling = boto3.client("application-autoscaling", endpoint_url=moto)
        table.write(dynamodb, TABLE, FUNCTION, Record(provisioned=2), 0)
        calls.clear()

        def pinged(version: str, count: int) -> dict[str, Any]:
            return ping_environments(invoker(lambda_client, version), count)._asdict()

        hold(
            Clients(lambda_client, cloudwatch, dynamodb, lambda: scaling, pinged), settings, datetime.now(UTC)
        )
        for client in (lambda_client, cloudwatch, dynamodb, scaling):
            client.close()
    assert_exact("WarmerRole", calls, parameters)


def test_pre_traffic_hook(
    aws_environ: dict[str, str], calls: list[Call], bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verification: the version and nothing else, and the word to CodeDeploy."""
    with lambda_door(bundle) as door:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", door.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_CODEDEPLOY", door.url)
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
    with lambda_door(bundle) as door:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", moto)
        monkeypatch.setenv("AWS_ENDPOINT_URL_CODEDEPLOY", door.url)
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
