"""Asynchronous invocations: retries, throttles, and what becomes of an event that nobody could handle."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.capacity.admission import Throttle, ThrottleReason
from coldframe_local.emulator.lambda_service.event_sources.async_invocations import AsyncInvocations
from coldframe_local.emulator.lambda_service.event_sources.destinations import EventInvokeConfig, NotSent
from coldframe_local.emulator.lambda_service.lambda_types import Invoked, ResourceNotFoundException
from coldframe_local.emulator.lambda_service.report import InvocationStatus, Outcome

pytestmark = pytest.mark.anyio

Answer = Invoked | Throttle | ResourceNotFoundException

THROTTLE = Throttle(ThrottleReason.RESERVED_CONCURRENCY)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def ended(status: InvocationStatus, error_type: str = "", payload: bytes = b"") -> Invoked:
    return Invoked(
        outcome=Outcome(status, payload, error_type),
        executed_version="1",
        request_id="id",
        log_tail=b"",
        duration_ms=1.0,
        max_memory_mb=1,
    )


SUCCESS = ended(InvocationStatus.SUCCESS, payload=b'{"a": [1]}')
FAILURE = ended(InvocationStatus.FAILURE, "LookupError", b'{"errorType": "LookupError"}')
QUEUE, TOPIC = "arn:aws:sqs:us-east-1:123456789012:failed", "arn:aws:sns:us-east-1:123456789012:done"
TEXT = "a text that no log may hold"
KEPT = EventInvokeConfig(on_failure=QUEUE)


class World:
    """A Lambda service that answers as it is told, destinations, and time that passes in sleeps only."""

    def __init__(self, answers: Iterator[Answer], config: EventInvokeConfig | None = None) -> None:
        self.answers = answers
        self.config = config or EventInvokeConfig()
        self.reserved: int | None = None
        self.reachable = True
        self.now_s = 0.0
        self.invoked_at: list[float] = []
        self.lines: list[str] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []

    async def invoke(
        self,
        name: str,
        qualifier: str | None,
        event: bytes,
        client_context: str = "",
        synchronous: bool = True,
    ) -> Invoked | Throttle:
        assert not synchronous, "events from a queue have no request rate"
        self.invoked_at.append(self.now_s)
        answer = next(self.answers)
        if isinstance(answer, ResourceNotFoundException):
            raise answer
        return answer

    def is_switched_off(self, name: str) -> bool:
        return self.reserved == 0

    def get_event_invoke_config(self, name: str, qualifier: str | None) -> EventInvokeConfig:
        return self.config

    def arn(self, name: str, qualifier: str) -> str:
        return f"arn:aws:lambda:us-east-1:123456789012:function:{name}:{qualifier}"

    async def send(self, arn: str, record: bytes) -> str:
        if not self.reachable:
            raise NotSent("the local stores are gone")
        self.sent.append((arn, json.loads(record)))
        return "aws sqs receive-message"

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    async def run(self, qualifier: str | None = None) -> None:
        """One event, until nothing is left to do for it."""
        events = AsyncInvocations(self, self, self.lines.append, None, lambda: self.now_s, self.sleep)
        events.send("name", qualifier, json.dumps({"text": TEXT}).encode())
        await events.idle()
        assert not any(TEXT in line for line in self.lines)


async def test_success_is_the_end() -> None:
    """An event that is served is not sent again."""
    world = World(iter([SUCCESS]), KEPT)
    await world.run()
    assert (world.invoked_at, world.lines, world.sent) == ([0.0], [], [])


async def test_errors_are_tried_twice_more() -> None:
    """After one minute and after two more; then the event is discarded, which the log says."""
    world = World(iter([FAILURE, FAILURE, FAILURE]))
    await world.run()
    assert world.invoked_at == [0.0, 60.0, 180.0]
    assert world.lines == [
        "An asynchronous event for name failed after 3 attempts: LookupError. "
        "It has no destination, and is discarded."
    ]


async def test_success_after_an_error() -> None:
    """The first attempt that succeeds ends it."""
    world = World(iter([FAILURE, SUCCESS]))
    await world.run()
    assert (world.invoked_at, world.lines) == ([0.0, 60.0], [])


async def test_throttles_wait_longer_each_time() -> None:
    """A throttled event waits 1, 2, 4… seconds, and that is not an attempt."""
    world = World(iter([THROTTLE, THROTTLE, THROTTLE, FAILURE, SUCCESS]))
    await world.run()
    assert world.invoked_at == [0.0, 1.0, 3.0, 7.0, 67.0]


async def test_function_that_is_gone() -> None:
    """Nothing is tried again for a function that is gone; its destination is gone with it."""
    world = World(iter([ResourceNotFoundException("no such alias")]), KEPT)
    await world.run()
    assert (world.invoked_at, world.sent) == ([0.0], [])
    assert world.lines == ["An asynchronous event for name is discarded: no such alias"]


@pytest.mark.parametrize(("attempts", "at"), [(0, [0.0]), (1, [0.0, 60.0]), (2, [0.0, 60.0, 180.0])])
async def test_maximum_retry_attempts(attempts: int, at: list[float]) -> None:
    """MaximumRetryAttempts is how often an error is tried again; the record says how often it was invoked."""
    world = World(iter([FAILURE] * 3), EventInvokeConfig(attempts, on_failure=QUEUE))
    await world.run()
    assert world.invoked_at == at
    [(_, record)] = world.sent
    assert record["requestContext"]["approximateInvokeCount"] == attempts + 1


async def test_record_of_a_failure() -> None:
    """It has the members that AWS documents: the event, the last response, and why it was given up.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html, read 2026-11-21
    """
    world = World(iter([FAILURE] * 3), KEPT)
    await world.run("live")
    [(arn, record)] = world.sent
    assert arn == QUEUE
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.pop("timestamp"))
    assert record == {
        "version": "1.0",
        "requestContext": {
            "requestId": "id",
            "functionArn": "arn:aws:lambda:us-east-1:123456789012:function:name:live",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 3,
        },
        "requestPayload": {"text": TEXT},
        "responseContext": {"statusCode": 200, "executedVersion": "1", "functionError": "Unhandled"},
        "responsePayload": {"errorType": "LookupError"},
    }
    assert world.lines == [
        "An asynchronous event for name failed after 3 attempts: LookupError. "
        "Its record is kept: aws sqs receive-message"
    ]


async def test_record_of_a_success() -> None:
    """With OnSuccess the result is sent on; without a qualifier the function is `$LATEST`."""
    world = World(iter([FAILURE, SUCCESS]), EventInvokeConfig(on_success=TOPIC, on_failure=QUEUE))
    await world.run()
    [(arn, record)] = world.sent
    assert arn == TOPIC
    assert record["requestContext"]["condition"] == "Success"
    assert record["requestContext"]["functionArn"].endswith(":name:$LATEST")
    assert record["responseContext"] == {"statusCode": 200, "executedVersion": "1"}
    assert record["responsePayload"] == {"a": [1]}


async def test_throttled_for_too_long() -> None:
    """An event that never got an environment is given up at its age, and its record has no response."""
    world = World(iter([THROTTLE] * 1000), EventInvokeConfig(maximum_age_s=600.0, on_failure=QUEUE))
    await world.run()
    assert 300.0 < world.invoked_at[-1] <= 600.0
    [(_, record)] = world.sent
    assert record["requestContext"]["condition"] == "EventAgeExceeded"
    assert record["requestContext"]["approximateInvokeCount"] == 0
    assert record["requestContext"]["requestId"]
    assert not {"responseContext", "responsePayload"} & set(record)
    assert world.lines[0].startswith(
        "An asynchronous event for name failed after 0 attempts: throttled, for longer than 600 s."
    )


async def test_age_counts_from_the_first_attempt_on() -> None:
    """A retry that would come too late is none: the record has the error of the attempt before."""
    world = World(iter([FAILURE] * 3), EventInvokeConfig(maximum_age_s=179.0, on_failure=QUEUE))
    await world.run()
    assert world.invoked_at == [0.0, 60.0]
    [(_, record)] = world.sent
    assert record["requestContext"]["condition"] == "EventAgeExceeded"
    assert record["requestContext"]["approximateInvokeCount"] == 2
    assert record["responsePayload"] == {"errorType": "LookupError"}


async def test_function_that_is_switched_off() -> None:
    """With a reserved concurrency of 0 nothing is waited for: the event goes to its destination at once."""
    world = World(iter([THROTTLE]), KEPT)
    world.reserved = 0
    await world.run()
    assert world.invoked_at == [0.0]
    [(_, record)] = world.sent
    assert record["requestContext"]["condition"] == "ZeroReservedConcurrency"
    assert "reserved concurrency is 0" in world.lines[0]


async def test_destination_that_cannot_be_reached() -> None:
    """The log says that the record is lost, where it should have gone and why; nothing else happens."""
    world = World(iter([FAILURE] * 3), KEPT)
    world.reachable = False
    await world.run()
    assert world.lines == [
        "An asynchronous event for name failed after 3 attempts: LookupError. "
        f"Its record is lost, because {QUEUE} cannot be reached: the local stores are gone."
    ]


@given(
    answers=st.lists(st.sampled_from([SUCCESS, FAILURE, THROTTLE]), max_size=20),
    then=st.sampled_from([SUCCESS, FAILURE, THROTTLE]),
    attempts=st.integers(0, 2),
    age_s=st.integers(60, 21_600),
)
def test_every_event_ends_once(answers: list[Answer], then: Answer, attempts: int, age_s: int) -> None:
    """Whatever happens: no attempt too many or too late, and one record, which says how it ended."""
    given_out: list[Answer] = []

    def noted() -> Iterator[Answer]:
        for answer in chain(answers, repeat(then)):
            given_out.append(answer)
            yield answer

    world = World(noted(), EventInvokeConfig(attempts, float(age_s), on_success=TOPIC, on_failure=QUEUE))
    asyncio.run(world.run())
    invocations = [answer for answer in given_out if answer is not THROTTLE]
    assert len(invocations) <= attempts + 1
    assert world.invoked_at[-1] <= age_s
    assert SUCCESS not in invocations[:-1]
    [(arn, record)] = world.sent
    served = invocations[-1:] == [SUCCESS]
    assert arn == (TOPIC if served else QUEUE)
    assert record["requestContext"]["approximateInvokeCount"] == len(invocations)
    assert record["requestPayload"] == {"text": TEXT}
    assert ("responsePayload" in record) == bool(invocations)
    exhausted = len(invocations) == attempts + 1
    expected = "Success" if served else "RetriesExhausted" if exhausted else "EventAgeExceeded"
    assert record["requestContext"]["condition"] == expected
