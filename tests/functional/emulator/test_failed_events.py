"""Asynchronous events that no function could handle, as users send them and read what became of them."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.stores.stores import without_stores
from coldframe_local.emulator.template.template import Template, load_template
from tests.conftest import ROOT
from tests.support.emulation import HERE

pytestmark = [pytest.mark.waits, pytest.mark.anyio, pytest.mark.usefixtures("aws_environ")]

AWS = Path(sys.executable).parent / "aws"
QUEUE = "coldframe-FailedEvents"
TEXT = "a text that no log may hold"
EVENT = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text()) | {
    "body": json.dumps({"text": TEXT}),
    "isBase64Encoded": False,
}
TWO_DESTINATIONS = f"""
Resources:
  Told:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: {HERE}
      Handler: handlers.told
      Runtime: python3.13
      MemorySize: 512
      EventInvokeConfig:
        MaximumRetryAttempts: 0
        DestinationConfig:
          OnSuccess: {{Type: SQS, Destination: !GetAtt Served.Arn}}
          OnFailure: {{Type: SQS, Destination: !GetAtt Failed.Arn}}
  Served: {{Type: AWS::SQS::Queue}}
  Failed: {{Type: AWS::SQS::Queue, Properties: {{QueueName: what-failed}}}}
"""


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The event loop that `run` uses."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
def lines() -> list[str]:
    """What was logged."""
    return []


@pytest.fixture
def slept_s() -> list[float]:
    """What an emulator would have waited between attempts."""
    return []


@asynccontextmanager
async def running(
    template: Template, lines: list[str], slept_s: list[float], **environ: str
) -> AsyncIterator[Emulator]:
    async def sleep(seconds: float) -> None:
        slept_s.append(seconds)

    options = EmulatorOptions(port=0, template=template, log=lines.append, environ=environ)
    async with Emulator(options, sleep=sleep) as emulator:
        yield emulator


async def sent(emulator: Emulator, name: str, event: Any) -> None:
    """Sends an event as a user does, and returns when nothing is left to do for it."""

    def invoke() -> int:
        client = boto3.client("lambda", endpoint_url=emulator.url)
        answer = client.invoke(FunctionName=name, InvocationType="Event", Payload=json.dumps(event))
        answer["Payload"].read()  # an answer that is not read to its end keeps its connection open
        client.close()
        status: int = answer["StatusCode"]
        return status

    assert await asyncio.to_thread(invoke) == 202
    await emulator.asynchronous.idle()


async def received(emulator: Emulator, queue: str = QUEUE) -> list[dict[str, Any]]:
    """What is in a queue, read as a user does."""

    def receive() -> list[dict[str, Any]]:
        client = boto3.client("sqs", endpoint_url=emulator.stores.url)
        url = client.get_queue_url(QueueName=queue)["QueueUrl"]
        messages = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        client.close()
        return [json.loads(message["Body"]) for message in messages]

    return await asyncio.to_thread(receive)


async def test_event_that_fails_is_in_the_queue(lines: list[str], slept_s: list[float]) -> None:
    """The project's template: three attempts, one minute and two apart, then the record with the event."""
    template = load_template(ROOT / "template.yaml")
    async with running(template, lines, slept_s, COLDFRAME_MODEL_DIR="/nowhere") as emulator:
        await sent(emulator, "PredictFunction:live", EVENT)
        [record] = await received(emulator)
    assert slept_s == [60.0, 120.0]
    asked = record["requestContext"]
    assert (asked["condition"], asked["approximateInvokeCount"]) == ("RetriesExhausted", 3)
    assert asked["functionArn"] == "arn:aws:lambda:us-east-1:123456789012:function:PredictFunction:live"
    assert any(f"START RequestId: {asked['requestId']}" in line for line in lines)
    assert record["requestPayload"] == EVENT
    assert record["responseContext"] == {
        "statusCode": 200,
        "executedVersion": "1",
        "functionError": "Unhandled",
    }
    assert record["responsePayload"]["errorType"] == "BundleMissing"
    assert not any(TEXT in line for line in lines)


async def test_command_in_the_log_reads_the_record(
    lines: list[str], slept_s: list[float], aws_environ: dict[str, str]
) -> None:
    """What the log tells to type shows the record."""
    template = load_template(ROOT / "template.yaml")
    async with running(template, lines, slept_s, COLDFRAME_MODEL_DIR="/nowhere") as emulator:
        await sent(emulator, "PredictFunction:live", EVENT)
        [line] = [line for line in lines if line.startswith("An asynchronous event")]
        program, *arguments = shlex.split(line.partition("Its record is kept: ")[2])
        assert program == "aws"
        shown = await asyncio.to_thread(
            subprocess.check_output, [str(AWS), *arguments], env=os.environ | aws_environ
        )
    [message] = json.loads(shown)["Messages"]
    assert json.loads(message["Body"])["requestPayload"] == EVENT


@pytest.mark.parametrize(("name", "parameters"), [
    ("PredictFunction:live", {"KeepFailedEvents": "off"}),
    ("PredictFunction", {}),  # the alias has a destination; $LATEST has none, as on Lambda
])  # fmt: skip
async def test_event_without_a_destination(
    name: str, parameters: dict[str, str], lines: list[str], slept_s: list[float]
) -> None:
    """It is discarded, and the log says so."""
    template = load_template(ROOT / "template.yaml", parameters)
    async with running(template, lines, slept_s, COLDFRAME_MODEL_DIR="/nowhere") as emulator:
        await sent(emulator, name, EVENT)
        assert await received(emulator) == []
    [line] = [line for line in lines if line.startswith("An asynchronous event")]
    assert line.endswith("BundleMissing. It has no destination, and is discarded.")


async def test_settings_are_there_for_boto3(lines: list[str], slept_s: list[float]) -> None:
    """Get and List say what the template says, for the qualifier that it is about and no other."""

    def read(url: str) -> tuple[Any, Any, str]:
        client = boto3.client("lambda", endpoint_url=url)
        name = {"FunctionName": "PredictFunction"}
        got = client.get_function_event_invoke_config(**name, Qualifier="live")
        listed = client.list_function_event_invoke_configs(**name)["FunctionEventInvokeConfigs"]
        with pytest.raises(ClientError) as caught:
            client.get_function_event_invoke_config(**name)
        client.close()
        return got, listed, caught.value.response["Error"]["Code"]

    async with running(load_template(ROOT / "template.yaml"), lines, slept_s) as emulator:
        got, listed, refused = await asyncio.to_thread(read, emulator.url)
    del got["ResponseMetadata"]
    assert got == {
        "FunctionArn": "arn:aws:lambda:us-east-1:123456789012:function:PredictFunction:live",
        "MaximumRetryAttempts": 2,
        "MaximumEventAgeInSeconds": 3600,
        "DestinationConfig": {
            "OnSuccess": {},
            "OnFailure": {"Destination": f"arn:aws:sqs:us-east-1:123456789012:{QUEUE}"},
        },
    }
    assert listed == [got]
    assert refused == "ResourceNotFoundException"


async def test_function_that_is_switched_off(lines: list[str], slept_s: list[float]) -> None:
    """A reserved concurrency of 0 sends events to the queue without an attempt."""
    async with running(load_template(ROOT / "template.yaml"), lines, slept_s) as emulator:
        emulator.service.concurrency.put_reserved("DeploymentPostTrafficFunction", 0)
        await sent(emulator, "DeploymentPostTrafficFunction", {"DeploymentId": "d-1"})
        [record] = await received(emulator)
    assert record["requestContext"]["condition"] == "ZeroReservedConcurrency"
    assert record["requestPayload"] == {"DeploymentId": "d-1"}
    assert slept_s == []


async def test_both_destinations(lines: list[str], slept_s: list[float], tmp_path: Path) -> None:
    """Results go to one queue and failures to another; MaximumRetryAttempts of 0 is one attempt."""
    path = tmp_path / "template.yaml"
    path.write_text(TWO_DESTINATIONS)
    async with running(load_template(path), lines, slept_s) as emulator:
        await sent(emulator, "Told", {"do": "echo", "text": "Straße"})
        await sent(emulator, "Told", {"do": "fail"})
        await sent(emulator, "Told", {"do": "leave"})
        [served] = await received(emulator, "coldframe-Served")
        failed = await received(emulator, "what-failed")
    assert served["requestContext"]["condition"] == "Success"
    assert served["responsePayload"]["event"] == {"do": "echo", "text": "Straße"}
    assert {record["responsePayload"]["errorType"] for record in failed} == {
        "LookupError",
        "Runtime.ExitError",
    }
    assert slept_s == []


async def test_records_of_many_events(lines: list[str], slept_s: list[float], tmp_path: Path) -> None:
    """Events that fail at the same time each have their own record."""
    path = tmp_path / "template.yaml"
    path.write_text(TWO_DESTINATIONS)
    async with running(load_template(path), lines, slept_s) as emulator:
        for number in range(8):
            emulator.asynchronous.send("Told", None, json.dumps({"do": "fail", "number": number}).encode())
        await emulator.asynchronous.idle()
        records = await received(emulator, "what-failed")
    assert sorted(record["requestPayload"]["number"] for record in records) == list(range(8))


async def test_record_too_large_for_a_message(lines: list[str], slept_s: list[float], tmp_path: Path) -> None:
    """An event of 1 MB leaves no room for its record: it is lost, as on AWS, and the log says so."""
    path = tmp_path / "template.yaml"
    path.write_text(TWO_DESTINATIONS)
    async with running(load_template(path), lines, slept_s) as emulator:
        await sent(emulator, "Told", {"do": "fail", "text": "x" * (1024 * 1024 - 100)})
        await sent(emulator, "Told", {"do": "fail"})
        records = await received(emulator, "what-failed")
    assert [record["requestPayload"] for record in records] == [{"do": "fail"}]
    [line, _] = [line for line in lines if line.startswith("An asynchronous event")]
    assert "Its record is lost, because arn:aws:sqs:us-east-1:123456789012:what-failed" in line


async def test_queue_that_is_gone(lines: list[str], slept_s: list[float], tmp_path: Path) -> None:
    """When the server of the stores was killed the record is lost, and functions go on."""
    path = tmp_path / "template.yaml"
    path.write_text(TWO_DESTINATIONS)
    async with running(load_template(path), lines, slept_s) as emulator:
        emulator.stores.start()
        await emulator.stores.ready()
        assert emulator.stores.pid is not None
        os.kill(emulator.stores.pid, signal.SIGKILL)
        await emulator.stores.finished()
        await sent(emulator, "Told", {"do": "fail"})
        await sent(emulator, "Told", {"do": "echo"})
    first, second = (line for line in lines if line.startswith("An asynchronous event"))
    assert first.endswith("what-failed cannot be reached: the local stores are gone.")
    assert second.startswith("An asynchronous event for Told succeeded. Its record is lost")


async def test_without_stores(lines: list[str], slept_s: list[float], tmp_path: Path) -> None:
    """Without stores there is no queue, which the log says of each record."""
    path = tmp_path / "template.yaml"
    path.write_text(TWO_DESTINATIONS)
    async with running(without_stores(load_template(path)), lines, slept_s) as emulator:
        await sent(emulator, "Told", {"do": "fail"})
        assert emulator.stores.pid is None
    [line] = [line for line in lines if line.startswith("An asynchronous event")]
    assert line.endswith("cannot be reached: it is not a queue that was made here.")
