"""Pings, warmer and deployment hooks on real execution environments, with the real model and boto3."""

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from coldframe.coldstart.pings import FunctionFailed, PingReport, invoker, ping, ping_environments
from coldframe.model.bundle import load_manifest
from coldframe_functions.post_traffic import app as post_traffic
from coldframe_functions.pre_traffic import app as pre_traffic
from coldframe_functions.warmer import app as warmer
from tests.conftest import EXAMPLE, ROOT, SECOND
from tests.functional.function.test_predict_function import HTTP
from tests.support.lambda_endpoint import VERSION, LambdaEndpoint, lambda_endpoint

pytestmark = pytest.mark.waits

GOLDEN_FILE = ROOT / "layers" / "golden" / "golden.json"
GOLDEN: dict[str, Any] = json.loads(GOLDEN_FILE.read_text())
DEPLOYMENT = {"DeploymentId": "d-1", "LifecycleEventHookExecutionId": "hook-1"}
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def endpoint(bundle: Path, aws_environ: dict[str, str]) -> Iterator[LambdaEndpoint]:
    with lambda_endpoint(bundle) as opened:
        yield opened


def client_of(endpoint: LambdaEndpoint, service: str = "lambda") -> Any:
    return boto3.client(service, endpoint_url=endpoint.url)


def test_pings_at_once_get_an_environment_each(endpoint: LambdaEndpoint) -> None:
    """N pings at once start N environments; N more find the same ones, warm."""
    client = client_of(endpoint)
    assert ping_environments(invoker(client, "predict"), 4) == PingReport(environments=4, cold=4, throttled=0)
    assert endpoint.environments() == 4
    assert ping_environments(invoker(client, "predict"), 4) == PingReport(environments=4, cold=0, throttled=0)
    assert endpoint.environments() == 4
    client.close()


def test_a_ping_takes_the_cold_start(endpoint: LambdaEndpoint) -> None:
    """The request after a ping is warm, and so is everything it runs."""
    client = client_of(endpoint)
    invoke = invoker(client, "predict")
    assert invoke(ping(0))["start"] == "cold"
    response = invoke(HTTP)
    assert json.loads(response["body"])["start"] == "warm"
    client.close()


def test_pings_that_are_not_held_share_an_environment(endpoint: LambdaEndpoint) -> None:
    """One after the other, pings find the same environment: holding is what tells them apart."""
    client = client_of(endpoint)
    invoke = invoker(client, "predict")
    assert len({invoke(ping(0))["environment"] for _ in range(3)}) == 1
    client.close()


def test_throttled_pings_are_counted(bundle: Path, aws_environ: dict[str, str]) -> None:
    """Where two environments are all there may be, three pings warm two, and nothing fails."""
    with lambda_endpoint(bundle, reserved_concurrency=2) as endpoint:
        client = boto3.client(
            "lambda",
            endpoint_url=endpoint.url,
            config=boto3.session.Config(retries={"total_max_attempts": 1}),
        )
        assert ping_environments(invoker(client, "predict"), 3) == PingReport(
            environments=2, cold=2, throttled=1
        )
        client.close()


def test_a_failing_function_is_no_answer(endpoint: LambdaEndpoint) -> None:
    """An event that the function refuses is an error of its own type, which holds no text."""
    client = client_of(endpoint)
    with pytest.raises(FunctionFailed, match=r"^ValueError$"):
        invoker(client, "predict")({"body": "a secret"})
    client.close()


# The warmer.


@pytest.fixture
def cloudwatch(moto: str, aws_environ: dict[str, str]) -> Iterator[Any]:
    client = boto3.client("cloudwatch", endpoint_url=moto)
    yield client
    client.close()


def put_concurrency(cloudwatch: Any, function: str, busy: int, at: datetime) -> None:
    cloudwatch.put_metric_data(
        Namespace="AWS/Lambda",
        MetricData=[
            {
                "MetricName": "ConcurrentExecutions",
                "Dimensions": [
                    {"Name": "FunctionName", "Value": function},
                    {"Name": "Resource", "Value": f"{function}:live"},
                ],
                "Timestamp": at,
                "Value": busy,
            }
        ],
    )


def test_warmer_pings_the_version_behind_the_alias(endpoint: LambdaEndpoint, cloudwatch: Any) -> None:
    """With little traffic, N environments are warm afterwards; the alias itself is not invoked."""
    client = client_of(endpoint)
    put_concurrency(cloudwatch, "quiet", 2, NOW - timedelta(minutes=2))
    report = warmer.keep_warm(client, cloudwatch, "quiet", "live", 3, lambda: NOW)
    assert report == {
        "wanted": 3, "skipped": False, "busy": 2, "version": VERSION,
        "environments": 3, "cold": 3, "throttled": 0,
    }  # fmt: skip
    assert endpoint.environments() == 3
    assert set(endpoint.invoked) == {f"quiet%3A{VERSION}"}
    client.close()


def test_warmer_leaves_it_to_traffic(endpoint: LambdaEndpoint, cloudwatch: Any) -> None:
    """When as many requests were under way at once since the last round, nothing is invoked."""
    client = client_of(endpoint)
    put_concurrency(cloudwatch, "busy", 3, NOW - timedelta(minutes=4))
    report = warmer.keep_warm(client, cloudwatch, "busy", "live", 3, lambda: NOW)
    assert report == {"wanted": 3, "skipped": True, "busy": 3}
    later = warmer.keep_warm(client, cloudwatch, "busy", "live", 1, lambda: NOW + timedelta(minutes=5))
    assert (later["skipped"], later["busy"]) == (False, 0)
    client.close()


def test_warmer_as_lambda_calls_it(
    endpoint: LambdaEndpoint, moto: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The handler finds its settings and clients in the environment, and logs its report."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", endpoint.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", moto)
    monkeypatch.setenv("FUNCTION_NAME", "new")
    monkeypatch.setenv("ALIAS", "live")
    monkeypatch.setenv("WARM_ENVIRONMENTS", "2")
    warmer._clients.cache_clear()
    report = warmer.handler({}, None)
    assert (report["environments"], report["cold"]) == (2, 2)
    line = json.loads(capsys.readouterr().out)
    assert line.pop("time").endswith("Z") and line.pop("duration_ms") >= 0
    assert line == {"event": "warming", **report}
    for client in warmer._clients(2):
        client.close()


# The pre-traffic hook.


def hook(
    endpoint: LambdaEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    golden: Path = GOLDEN_FILE,
    event: dict[str, str] = DEPLOYMENT,
) -> dict[str, Any]:
    """The hook as CodeDeploy calls it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", endpoint.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_CODEDEPLOY", endpoint.url)
    monkeypatch.setenv("NEW_VERSION", f"arn:aws:lambda:us-east-1:123456789012:function:predict:{VERSION}")
    monkeypatch.setenv("WARM_ENVIRONMENTS", "2")
    monkeypatch.setattr(pre_traffic, "GOLDEN", golden)
    pre_traffic._clients.cache_clear()
    try:
        return pre_traffic.handler(event, None)
    finally:
        for client in pre_traffic._clients():
            client.close()


def test_hook_lets_a_good_version_through(endpoint: LambdaEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version whose embeddings are the golden ones gets its traffic, with warm environments."""
    report = hook(endpoint, monkeypatch)
    assert report["status"] == "Succeeded", report
    assert report["golden"] == 34
    assert GOLDEN["min_cosine"] <= report["lowest_cosine"] <= 1
    assert (report["environments"], report["cold"]) == (2, 2)
    assert endpoint.statuses == [
        {"deploymentId": "d-1", "lifecycleEventHookExecutionId": "hook-1", "status": "Succeeded"}
    ]


def test_hook_asks_every_model(
    two_models: Path, aws_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The report has the version of each model; one that cannot be loaded stops the deployment."""
    with lambda_endpoint(two_models, COLDFRAME_MODELS=f"{EXAMPLE},{SECOND}") as endpoint:
        report = hook(endpoint, monkeypatch)
    assert report["status"] == "Succeeded", report
    assert report["models"] == {name: load_manifest(two_models, name).version for name in (EXAMPLE, SECOND)}
    shutil.copytree(two_models, tmp_path, dirs_exist_ok=True)
    (tmp_path / SECOND / "estimator.bin").write_bytes(b"short")
    with lambda_endpoint(tmp_path, COLDFRAME_MODELS=f"{EXAMPLE},{SECOND}") as endpoint:
        assert hook(endpoint, monkeypatch)["status"] == "Failed"
    assert [status["status"] for status in endpoint.statuses] == ["Failed"]


def test_hook_of_another_encoder(endpoint: LambdaEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Golden vectors of an encoder that the version does not serve are compared with no other encoder."""
    monkeypatch.setattr(pre_traffic, "ENCODER", "another")
    report = hook(endpoint, monkeypatch)
    assert (report["status"], report["golden"]) == ("Succeeded", 0)
    assert "lowest_cosine" not in report


def test_hook_stops_a_drifting_version(
    endpoint: LambdaEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A version whose embeddings are others is refused, and CodeDeploy hears it."""
    drifting = {**GOLDEN, "vectors": [{**v, "embedding": v["embedding"][::-1]} for v in GOLDEN["vectors"]]}
    (tmp_path / "golden.json").write_text(json.dumps(drifting))
    report = hook(endpoint, monkeypatch, tmp_path / "golden.json")
    assert (report["status"], report["error"]) == ("Failed", "NotVerified")
    assert "cosine" in report["detail"]
    assert [status["status"] for status in endpoint.statuses] == ["Failed"]


def test_hook_stops_a_version_that_does_not_start(
    tmp_path: Path, aws_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that fails its init phase is refused; no exception of the hook keeps CodeDeploy waiting."""
    with lambda_endpoint(tmp_path) as endpoint:  # no bundle there
        report = hook(endpoint, monkeypatch)
    assert (report["status"], report["error"]) == ("Failed", "FunctionFailed")
    assert [status["status"] for status in endpoint.statuses] == ["Failed"]


def test_hook_by_hand(endpoint: LambdaEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invoked without a deployment, the hook reports and tells nobody."""
    report = hook(endpoint, monkeypatch, event={})
    assert report["status"] == "Succeeded"
    assert endpoint.statuses == []


# The post-traffic hook.


@pytest.fixture
def versions(moto: str, aws_environ: dict[str, str]) -> Iterator[Any]:
    """boto3's client of a function with versions 1 to 6; `live` points to 6, `old` to 1."""
    iam, client = boto3.client("iam", endpoint_url=moto), boto3.client("lambda", endpoint_url=moto)
    role = iam.create_role(RoleName="predict", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    client.create_function(
        FunctionName="predict",
        Runtime="python3.13",
        Handler="app.handler",
        Role=role,
        Code={"ZipFile": zipped(b"0")},
    )
    for number in range(1, 7):
        client.update_function_code(FunctionName="predict", ZipFile=zipped(b"%d" % number))
        assert client.publish_version(FunctionName="predict")["Version"] == str(number)
    client.create_alias(FunctionName="predict", Name="live", FunctionVersion="6")
    client.create_alias(FunctionName="predict", Name="old", FunctionVersion="1")
    yield client
    client.delete_function(FunctionName="predict")
    iam.delete_role(RoleName="predict")
    iam.close()
    client.close()


def zipped(content: bytes) -> bytes:
    """A zip file with `app.py`."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as file:
        file.writestr("app.py", content)
    return memory.getvalue()


def test_prune_keeps_the_newest_and_what_is_in_use(versions: Any) -> None:
    """The three newest versions stay, and the one that an alias points to; a second run finds nothing."""
    assert post_traffic.prune(versions, "predict", 3) == {"deleted": ["2", "3"], "kept": ["1", "4", "5", "6"]}
    found = versions.list_versions_by_function(FunctionName="predict")["Versions"]
    assert sorted(entry["Version"] for entry in found) == ["$LATEST", "1", "4", "5", "6"]
    assert post_traffic.prune(versions, "predict", 3) == {"deleted": [], "kept": ["1", "4", "5", "6"]}


def test_prune_keeps_both_sides_of_a_canary(versions: Any) -> None:
    """A version that gets a part of an alias's requests stays, however old."""
    weights = {"AdditionalVersionWeights": {"2": 0.1}}
    versions.update_alias(FunctionName="predict", Name="live", RoutingConfig=weights)
    assert post_traffic.prune(versions, "predict", 2)["deleted"] == ["3", "4"]


def test_post_traffic_hook_never_undoes_a_deployment(
    endpoint: LambdaEndpoint, moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be pruned is reported, and CodeDeploy still hears of success."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", moto)
    monkeypatch.setenv("AWS_ENDPOINT_URL_CODEDEPLOY", endpoint.url)
    monkeypatch.setenv("FUNCTION_NAME", "nobody-knows-it")
    monkeypatch.setenv("KEPT_VERSIONS", "3")
    post_traffic._clients.cache_clear()
    report = post_traffic.handler(DEPLOYMENT, None)
    assert report["error"] == "ResourceNotFoundException"
    assert [status["status"] for status in endpoint.statuses] == ["Succeeded"]
    for client in post_traffic._clients():
        client.close()
