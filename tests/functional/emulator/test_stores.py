"""Tables, buckets and queues of a template, in moto's server or at endpoints that were given."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.lambda_service.event_sources.destinations import NotSent
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.stores.places import StoreOptions
from coldframe_local.emulator.stores.stores import Stores, StoresCannotListen, without_stores
from coldframe_local.emulator.template.template import Template, load_template
from coldframe_local.paths import ROOT
from tests.support.dynamodb import JOBS_TABLE, create_jobs_table

pytestmark = [pytest.mark.waits, pytest.mark.anyio]

PATIENCE_S = 60.0
TABLE, BUCKET, QUEUE = "coldframe-CacheTable", "coldframe-cachebucket", "coldframe-FailedEvents"


@pytest.fixture
def template() -> Template:
    """The project's."""
    return load_template(ROOT / "template.yaml")


@asynccontextmanager
async def started(template: Template, lines: list[str], **options: Any) -> AsyncIterator[Stores]:
    async with Stores(template, StoreOptions(**options), lines.append) as stores:
        stores.start()
        await stores.ready()
        yield stores


def client_of(service: str, environ: dict[str, str]) -> Any:
    return boto3.client(
        service,
        endpoint_url=environ[f"AWS_ENDPOINT_URL_{service.upper()}"],
        region_name="us-east-1",
        aws_access_key_id=environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environ["AWS_SECRET_ACCESS_KEY"],
        config=Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 1}),
    )


def described(environ: dict[str, str]) -> tuple[Any, Any, list[str]]:
    """Key, time to live, and buckets."""
    dynamodb, s3 = client_of("dynamodb", environ), client_of("s3", environ)
    try:
        return (
            dynamodb.describe_table(TableName=TABLE)["Table"]["KeySchema"],
            dynamodb.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"],
            [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]],
        )
    finally:
        dynamodb.close()
        s3.close()


async def test_table_and_bucket_are_the_template_s(template: Template, lines: list[str]) -> None:
    """What a function finds is what its template describes."""
    async with started(template, lines) as stores:
        key, ttl, buckets = await asyncio.to_thread(described, stores.environ)
    assert key == [{"AttributeName": "cache_key", "KeyType": "HASH"}]
    assert ttl == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at_s"}
    assert buckets == [BUCKET]
    assert lines == []


def attributes_of_the_queue(environ: dict[str, str]) -> dict[str, str]:
    sqs = client_of("sqs", environ)
    try:
        url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
        found: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return found
    finally:
        sqs.close()


async def test_queue_is_the_template_s(template: Template, lines: list[str]) -> None:
    """It keeps messages as long, and takes them as large, as the template says."""
    async with started(template, lines) as stores:
        attributes = await asyncio.to_thread(attributes_of_the_queue, stores.environ)
    assert attributes["QueueArn"] == f"arn:aws:sqs:us-east-1:123456789012:{QUEUE}"
    assert (attributes["MessageRetentionPeriod"], attributes["MaximumMessageSize"]) == ("1209600", "1048576")
    assert lines == []


async def test_first_connection_starts_the_server(template: Template, lines: list[str]) -> None:
    """Nothing runs until somebody connects, who then gets an answer."""
    async with Stores(template, StoreOptions(), lines.append) as stores:
        assert stores.pid is None
        async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as web:
            assert (await web.get(f"{stores.url}/moto-api/")).status_code == 200
        assert stores.pid is not None


async def test_a_refused_transaction_loses_no_write(template: Template, lines: list[str]) -> None:
    """Of transactions that are refused nothing stays, and all that others write meanwhile does.

    A conflict is not a refusal by a condition: AWS lets the caller begin the transaction again.
    """

    def count_up(dynamodb: Any, number: int) -> str:
        key = {"job": {"S": "one"}, "item": {"S": "job"}}
        count = {"UpdateExpression": "ADD done :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
        part = {"job": {"S": "one"}, "item": {"S": f"part {number % 3}"}}
        put = {"TableName": JOBS_TABLE, "Item": part, "ConditionExpression": "attribute_not_exists(job)"}
        try:
            if number % 2:
                dynamodb.update_item(TableName=JOBS_TABLE, Key=key, **count)
            else:
                update = {"TableName": JOBS_TABLE, "Key": key, **count}
                dynamodb.transact_write_items(TransactItems=[{"Update": update}, {"Put": put}])
        except dynamodb.exceptions.TransactionConflictException:
            return count_up(dynamodb, number)
        except dynamodb.exceptions.TransactionCanceledException as exc:
            codes = {reason["Code"] for reason in exc.response["CancellationReasons"]} - {"None"}
            return count_up(dynamodb, number) if "TransactionConflict" in codes else str(*codes)
        return "counted"

    async with started(template, lines) as stores:
        dynamodb = client_of("dynamodb", stores.environ)
        create_jobs_table(dynamodb)
        with ThreadPoolExecutor(8) as pool:
            found = Counter(pool.map(partial(count_up, dynamodb), range(400)))
        items = dynamodb.scan(TableName=JOBS_TABLE)["Items"]
        dynamodb.close()
    assert found == {"counted": 203, "ConditionalCheckFailed": 197}
    counts = {item["item"]["S"]: item.get("done") for item in items}
    assert counts == {"job": {"N": "203"}, "part 0": None, "part 1": None, "part 2": None}


async def test_nothing_outlives_the_block(template: Template, lines: list[str]) -> None:
    """The end of the block is the end of the server, started or not."""
    async with Stores(template, StoreOptions(), lines.append):
        pass
    async with started(template, lines) as stores:
        pid = stores.pid
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_nothing_starts_after_the_block(template: Template, lines: list[str]) -> None:
    """The last request may be answered when the emulator is leaving already: it starts no server."""
    async with Stores(template, StoreOptions(), lines.append) as stores:
        pass
    stores.start()
    await stores.finished()
    assert (stores.pid, lines) == (None, [])


async def test_given_endpoints_get_table_and_bucket(template: Template, lines: list[str], moto: str) -> None:
    """DynamoDB Local, MinIO and the like are filled as moto is; a second run finds everything there."""
    endpoints = {"dynamodb_endpoint": moto, "s3_endpoint": moto, "sqs_endpoint": moto}
    for _ in range(2):
        async with started(template, lines, **endpoints) as stores:
            assert stores.url is None
            environ = stores.environ
            arn = f"arn:aws:sqs:us-east-1:123456789012:{QUEUE}"
            assert moto in await stores.send(arn, b"a message")
    assert {environ[f"AWS_ENDPOINT_URL_{service}"] for service in ("DYNAMODB", "S3", "SQS")} == {moto}
    attributes = await asyncio.to_thread(attributes_of_the_queue, environ)
    assert attributes["ApproximateNumberOfMessages"] == "2"
    _, ttl, buckets = await asyncio.to_thread(described, environ)
    assert ttl["TimeToLiveStatus"] == "ENABLED"
    assert BUCKET in buckets
    assert lines == []


async def test_one_given_endpoint(template: Template, lines: list[str], moto: str) -> None:
    """The other service is moto's."""
    async with started(template, lines, dynamodb_endpoint=moto) as stores:
        assert stores.environ["AWS_ENDPOINT_URL_DYNAMODB"] == moto
        assert stores.environ["AWS_ENDPOINT_URL_S3"] == stores.url


async def test_unreachable_endpoint_is_named(template: Template, lines: list[str]) -> None:
    """An endpoint where nobody listens is said once, and functions run without."""
    nobody = "http://127.0.0.1:9"
    endpoints = {"dynamodb_endpoint": nobody, "s3_endpoint": nobody, "sqs_endpoint": nobody}
    async with started(template, lines, **endpoints) as stores:
        await stores.finished()
        with pytest.raises(NotSent, match="the local stores are gone"):
            await stores.send(f"arn:aws:sqs:us-east-1:123456789012:{QUEUE}", b"a message")
    [line] = lines
    assert line.startswith("Tables, buckets and queues of the template could not be made")
    assert nobody in line


async def test_own_credentials_are_for_given_endpoints(
    template: Template, lines: list[str], moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A developer's credentials go to functions only with an endpoint that the developer named."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    async with Stores(template, StoreOptions(), lines.append) as stores:
        assert stores.environ["AWS_ACCESS_KEY_ID"] == "local"
    async with Stores(template, StoreOptions(moto, moto), lines.append) as stores:
        assert stores.environ["AWS_ACCESS_KEY_ID"] == "mine"


async def test_real_aws_is_left_as_it_is(template: Template, lines: list[str]) -> None:
    """Nothing is made in an account, nor sent there."""
    dynamodb, s3, sqs = (f"https://{name}.us-east-1.amazonaws.com" for name in ("dynamodb", "s3", "sqs"))
    aws = StoreOptions(dynamodb, s3, sqs)
    async with Stores(template, aws, lines.append) as stores:
        await stores.ready()
        with pytest.raises(NotSent, match="AWS itself"):
            await stores.send(f"arn:aws:sqs:us-east-1:123456789012:{QUEUE}", b"a message")
        assert stores.pid is None


async def test_template_without_stores(template: Template) -> None:
    """Without stores the variables that named them are empty, and nothing is started."""
    without = without_stores(template)
    environ = without.functions[0].settings.environ
    assert (environ["COLDFRAME_CACHE_TABLE"], environ["COLDFRAME_CACHE_BUCKET"]) == ("", "")
    assert environ["COLDFRAME_CACHE_POLICY"] == "adaptive"
    assert Stores(without, StoreOptions(), print).environ == {}


async def test_endpoint_without_anything_to_make(template: Template, lines: list[str], moto: str) -> None:
    """An endpoint of the shell alone, such as `AWS_ENDPOINT_URL_DYNAMODB`, starts no process."""
    async with Stores(without_stores(template), StoreOptions(moto), lines.append) as stores:
        stores.start()
        await stores.ready()
        assert (stores.pid, lines) == (None, [])


async def test_predictions_survive_the_store(bundle: Path, lines: list[str]) -> None:
    """The function writes to the store and, once it is killed, answers on without."""
    template = load_template(ROOT / "template.yaml", {"CachePolicy": "always", "L1CacheBytes": "0"})
    options = EmulatorOptions(
        port=0,
        template=template,
        log=lines.append,
        environ={"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_CACHE_DEADLINE_MS": "5000"},
    )
    async with (
        Emulator(options) as emulator,
        httpx.AsyncClient(base_url=emulator.url, timeout=PATIENCE_S, trust_env=False) as web,
    ):
        emulator.stores.start()
        await emulator.stores.ready()
        asked = {"text": "The shuttle reached orbit", "heads": ["logreg"]}
        first = (await web.post("/v1/predict", json=asked)).json()
        second = (await web.post("/v1/predict", json=asked)).json()
        assert emulator.stores.pid is not None
        os.kill(emulator.stores.pid, signal.SIGKILL)
        await emulator.stores.finished()
        after = await web.post("/v1/predict", json=asked)
    assert (first["usage"]["cache"]["miss"], second["usage"]["cache"]["l2"]) == (1, 1)
    assert after.status_code == 200
    assert after.json()["predictions"] == first["predictions"]
    assert after.json()["usage"]["cache"]["miss"] == 1
    assert any(re.match(r"The local stores are gone: signal: killed\.", line) for line in lines)


SERVE = """
import asyncio, sys
from pathlib import Path
from coldframe_local.emulator.stores.places import StoreOptions
from coldframe_local.emulator.stores.stores import Stores
from coldframe_local.emulator.template.template import load_template

async def main():
    async with Stores(load_template(Path("template.yaml")), StoreOptions(), print) as stores:
        stores.start()
        await stores.ready()
        print(stores.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def is_alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be reaped does not."""
    status = Path(f"/proc/{pid}/status")
    if not Path("/proc/self").exists():
        return subprocess.run(["ps", "-p", str(pid)], capture_output=True).returncode == 0
    return status.exists() and not re.search(r"^State:\s+[ZX]", status.read_text(), re.MULTILINE)


async def test_server_ends_with_a_killed_emulator() -> None:
    """Even after SIGKILL nothing is left: the server's standard input ends."""
    emulator = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVE, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=PIPE
    )
    assert emulator.stdout is not None
    pid = int(await emulator.stdout.readline())
    assert is_alive(pid)
    emulator.kill()
    await emulator.wait()
    async with asyncio.timeout(PATIENCE_S):
        while is_alive(pid):
            await asyncio.sleep(0.005)


async def test_stores_listen_where_they_are_told(template: Template, lines: list[str]) -> None:
    """A port of one's own is used, and a second emulator is told that it is taken."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with started(template, lines, port=port) as stores:
        assert stores.url == f"http://127.0.0.1:{port}"
        with pytest.raises(StoresCannotListen, match="Name another --stores-port"):
            Stores(template, StoreOptions(port=port), lines.append)
