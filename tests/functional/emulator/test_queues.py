"""SQS event source mappings of a template that is not ours, in the emulator, against moto's SQS."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.stores.stores import without_stores
from coldframe_local.emulator.template.template import Template, load_template
from tests.conftest import ROOT
from tests.support.emulation import PATIENCE_S

pytestmark = [pytest.mark.waits, pytest.mark.anyio, pytest.mark.usefixtures("aws_environ")]

CODE = """
import json, os

def handler(event, context):
    bodies = [record["body"] for record in event["Records"]]
    with open(os.environ["TOLD"], "a") as told:
        told.write(json.dumps(event) + "\\n")
    if "crash" in bodies:
        raise RuntimeError("all of them")
    failed = [r["messageId"] for r in event["Records"] if r["body"] == "poison"]
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}

def send(event, context):
    import boto3
    boto3.client("sqs").send_message(QueueUrl=os.environ["QUEUE_URL"], MessageBody=event["body"])
"""
TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Globals:
  Function: {{CodeUri: ., Runtime: python3.13, MemorySize: 256, Timeout: 10}}
Resources:
  Worker:
    Type: AWS::Serverless::Function
    Properties:
      Handler: worker.handler
      Events:
        Work:
          Type: SQS
          Properties: {{Queue: !GetAtt Work.Arn, {mapping}}}
  Sender:
    Type: AWS::Serverless::Function
    Properties:
      Handler: worker.send
      Environment: {{Variables: {{QUEUE_URL: !Ref Work}}}}
  Work:
    Type: AWS::SQS::Queue
    Properties:
      RedrivePolicy: {{deadLetterTargetArn: !GetAtt Failed.Arn, maxReceiveCount: 2}}
  Failed: {{Type: AWS::SQS::Queue}}
"""
PARTIAL = "FunctionResponseTypes: [ReportBatchItemFailures]"


class Running:
    """An emulator, its queues, and what the worker was told."""

    def __init__(self, emulator: Emulator, told: Path, lines: list[str]) -> None:
        self.emulator = emulator
        self.lines = lines
        self._told = told
        self._sqs = boto3.client("sqs", endpoint_url=emulator.stores.url)

    def events(self) -> list[Any]:
        return (
            [json.loads(line) for line in self._told.read_text().splitlines()] if self._told.exists() else []
        )

    def bodies(self) -> list[list[str]]:
        return [[record["body"] for record in event["Records"]] for event in self.events()]

    def count(self, queue: str) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self._sqs.get_queue_attributes(QueueUrl=self._url(queue), AttributeNames=names)
        return sum(map(int, found["Attributes"].values()))

    async def send(self, *bodies: str, queue: str = "Work") -> None:
        entries = [{"Id": str(i), "MessageBody": body} for i, body in enumerate(bodies)]

        def sent() -> None:
            for first in range(0, len(entries), 10):
                self._sqs.send_message_batch(QueueUrl=self._url(queue), Entries=entries[first : first + 10])

        await asyncio.to_thread(sent)

    async def return_failed(self, *bodies: str, failures: int) -> None:
        """Ends the visibility timeout of messages, once so many batches have failed, and not before.

        A timeout that is short enough to wait for is over on a busy machine while the function still works.
        """
        await self.until(lambda: sum(" failed in Worker" in line for line in self.lines) == failures)
        # Of a message that was received twice, the last one counts.
        handles = {
            record["body"]: record["receiptHandle"] for event in self.events() for record in event["Records"]
        }
        entries = [
            {"Id": str(i), "ReceiptHandle": handles[body], "VisibilityTimeout": 0}
            for i, body in enumerate(bodies)
        ]
        await asyncio.to_thread(
            self._sqs.change_message_visibility_batch, QueueUrl=self._url("Work"), Entries=entries
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not await asyncio.to_thread(condition):
                await asyncio.sleep(0.05)

    def _url(self, queue: str) -> str:
        return str(self._sqs.get_queue_url(QueueName=f"coldframe-{queue}")["QueueUrl"])


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Template]:
    """The template, with properties of its mapping."""
    (tmp_path / "worker.py").write_text(CODE)

    def loaded(mapping: str) -> Template:
        (tmp_path / "t.yaml").write_text(TEMPLATE.format(mapping=mapping))
        return load_template(tmp_path / "t.yaml")

    return loaded


@asynccontextmanager
async def running(template: Template, tmp_path: Path, **changes: Any) -> AsyncIterator[Running]:
    lines: list[str] = []
    told = tmp_path / "told"
    options = EmulatorOptions(template, port=0, environ={"TOLD": str(told)}, log=lines.append, **changes)
    async with Emulator(options) as emulator:
        lines.extend(emulator.notes())
        yield Running(emulator, told, lines)


async def test_messages_become_events(load: Callable[[str], Template], tmp_path: Path) -> None:
    """A function's message invokes another with Lambda's event, and is deleted."""
    async with running(load(PARTIAL), tmp_path) as here:
        sent = await here.emulator.service.invoke("Sender", None, b'{"body": "hello"}')
        assert sent.outcome.payload == b"null", sent  # type: ignore[union-attr]
        await here.until(lambda: here.bodies() == [["hello"]] and here.count("Work") == 0)
    (record,) = here.events()[0]["Records"]
    assert record["eventSource"] == "aws:sqs"
    assert record["eventSourceARN"] == "arn:aws:sqs:us-east-1:123456789012:coldframe-Work"
    assert record["attributes"]["ApproximateReceiveCount"] == "1"
    assert record.keys() >= {"messageId", "receiptHandle", "md5OfBody", "messageAttributes", "awsRegion"}
    assert "Queue coldframe-Work calls Worker in batches of at most 10." in here.lines


async def test_one_failure_is_received_again_alone(load: Callable[[str], Template], tmp_path: Path) -> None:
    """Only what the answer names is received again, and ends in the queue for failed messages."""
    async with running(load(PARTIAL), tmp_path) as here:
        await here.send("good", "poison", "better")
        for failures in (1, 2):
            await here.return_failed("poison", failures=failures)
        await here.until(lambda: here.count("Failed") == 1 and here.count("Work") == 0)
    bodies = [body for batch in here.bodies() for body in batch]
    assert sorted(bodies) == ["better", "good", "poison", "poison"]


async def test_a_crash_repeats_the_batch(load: Callable[[str], Template], tmp_path: Path) -> None:
    """An invocation that fails repeats all of its messages; without partial failures nothing else does."""
    # The window: the queue may be read after the first of two messages that are sent together has arrived.
    settings = "BatchSize: 2, MaximumBatchingWindowInSeconds: 2"
    async with running(load(settings), tmp_path) as here:
        await here.send("poison")
        await here.until(lambda: here.bodies() == [["poison"]] and here.count("Work") == 0)
        await here.send("crash", "good")
        for failures in (1, 2):
            await here.return_failed("crash", "good", failures=failures)
        await here.until(lambda: here.count("Failed") == 2)
    bodies = sorted(body for batch in here.bodies()[1:] for body in batch)
    assert bodies == ["crash", "crash", "good", "good"]
    assert any("2 of 2 messages of coldframe-Work failed in Worker" in line for line in here.lines)


async def test_window_and_size(load: Callable[[str], Template], tmp_path: Path) -> None:
    """A batch is larger than SQS's ten where a window lets it grow, and never larger than it may be."""
    settings = f"{PARTIAL}, BatchSize: 25, MaximumBatchingWindowInSeconds: 2"
    async with running(load(settings), tmp_path) as here:
        await here.send(*map(str, range(60)))
        await here.until(lambda: here.count("Work") == 0)
    sizes = [len(batch) for batch in here.bodies()]
    assert max(sizes) == 25
    assert sorted({body for batch in here.bodies() for body in batch}) == sorted(map(str, range(60)))


async def test_switched_off(load: Callable[[str], Template], tmp_path: Path) -> None:
    """Queues are not read where the options say so, nor where there are no stores."""
    async with running(load(PARTIAL), tmp_path, event_source_mappings=False) as here:
        await here.send("left")
        assert here.count("Work") == 1
    assert "Queues of the template are not read: `event_source_mappings` is false." in here.lines
    assert without_stores(load(PARTIAL)).event_sources.mappings == ()


async def test_a_template_of_a_stranger(tmp_path: Path) -> None:
    """A template that was not written for us runs as it stands: queue, alias, bucket, dead letters."""
    template = load_template(ROOT / "tests" / "fixtures" / "stranger_queue.yaml", {"Visibility": "12"})
    async with running(template, tmp_path) as here:
        await here.send("a.png", "broken.png", "b.png", queue="Pictures")
        await here.until(lambda: here.count("Broken") == 1 and here.count("Pictures") == 0)
        s3 = boto3.client("s3", endpoint_url=here.emulator.stores.url)
        made = s3.list_objects_v2(Bucket="coldframe-made")["Contents"]
        assert [each["Key"] for each in made] == ["a.png", "b.png"]
