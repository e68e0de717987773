"""The emulator's event loop and log; moto's server, and the fault-injecting one in front of it."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator

import boto3
import pytest

from coldframe_bench.targets.faulty_server import FaultyServer, faulty_server

TABLE, BUCKET = "predictions", "large-predictions"
SECRET_KEY = "not-for-any-log"


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The event loop that `run` uses."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
def lines() -> list[str]:
    """What was logged."""
    return []


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """Address of moto's server, in a process of its own, with nothing in it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for pytest, which then ends this process itself
    )
    assert process.stderr is not None
    address = None
    for line in process.stderr:
        if found := re.search(r"Running on (http://127\.0\.0\.1:\d+)", line):
            address = found[1]
            break
    assert address, "moto's server did not start"
    with process:
        # It logs every request: a pipe that nobody reads would stop it.
        reader = threading.Thread(target=process.stderr.read)
        reader.start()
        yield address
        process.kill()
        reader.join()


@pytest.fixture
def aws_environ(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What boto3 needs to work with a local server, for this process and others."""
    environ = {
        "AWS_ACCESS_KEY_ID": "an-id",
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return environ


@pytest.fixture
def store(moto: str, aws_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    """Table and bucket of the cache, empty, behind a server that fails on demand."""
    dynamodb = boto3.client("dynamodb", endpoint_url=moto)
    s3 = boto3.client("s3", endpoint_url=moto)
    dynamodb.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "cache_key", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "cache_key", "KeyType": "HASH"}],
    )
    s3.create_bucket(Bucket=BUCKET)
    with faulty_server(moto) as server:
        for service in ("DYNAMODB", "S3"):
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", server.url)
            aws_environ[f"AWS_ENDPOINT_URL_{service}"] = server.url
        yield server
    dynamodb.delete_table(TableName=TABLE)
    for entry in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        s3.delete_object(Bucket=BUCKET, Key=entry["Key"])
    s3.delete_bucket(Bucket=BUCKET)
    dynamodb.close()
    s3.close()
