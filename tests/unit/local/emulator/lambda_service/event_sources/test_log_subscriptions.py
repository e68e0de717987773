"""Log lines that invoke functions, in virtual time."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.capacity.limits import ASYNC_PAYLOAD
from coldframe_functions.traces.app import read_record
from coldframe_local.emulator.lambda_service.event_sources.log_subscriptions import (
    FilterPattern,
    LogSubscription,
    LogSubscriptions,
)

pytestmark = pytest.mark.anyio
TRACED = FilterPattern.parse("{ $.sampled IS TRUE }")
SUBSCRIPTION = LogSubscription("S", "/aws/lambda/F", frozenset({"F"}), "G", None, TRACED)
EVERYTHING = LogSubscription("T", "/aws/lambda/F", frozenset({"F"}), "H", "live")
SAMPLED = '{"sampled":true}'


class Events:
    """Asynchronous events that were sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str | None, dict[str, Any]]] = []
        self.sizes: list[int] = []

    def send(self, name: str, qualifier: str | None, event: bytes) -> None:
        data = json.loads(event)["awslogs"]["data"]
        self.sizes.append(len(event))
        self.sent.append((name, qualifier, json.loads(gzip.decompress(base64.b64decode(data)))))


class World:
    """Subscriptions whose wait ends when `turn` says so."""

    def __init__(self, *subscriptions: LogSubscription) -> None:
        self.events = Events()
        self._woken = asyncio.Event()
        self.waits: list[float] = []
        self.logs = LogSubscriptions(subscriptions, self.events, lambda: 1_700_000_000.25, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await self._woken.wait()

    async def turn(self) -> None:
        await asyncio.sleep(0)
        self._woken.set()
        for _ in range(3):
            await asyncio.sleep(0)
        self._woken.clear()


async def test_lines_are_gathered_and_sent_by_stream() -> None:
    world = World(SUBSCRIPTION)
    for stream, line in (("a", SAMPLED), ("b", SAMPLED), ("a", '{"sampled":true,"n":2}')):
        world.logs.add("F", stream, line)
    assert world.events.sent == []  # whoever writes a line waits for nothing
    await world.turn()
    assert world.waits == [1.0]
    first, second = world.events.sent
    assert first[:2] == ("G", None)
    record = first[2]
    assert (record["messageType"], record["logGroup"], record["logStream"]) == (
        "DATA_MESSAGE",
        "/aws/lambda/F",
        "a",
    )
    assert record["subscriptionFilters"] == ["S"]
    assert [event["message"] for event in record["logEvents"]] == [
        SAMPLED + "\n",
        '{"sampled":true,"n":2}\n',
    ]
    assert [event["timestamp"] for event in record["logEvents"]] == [1_700_000_000_250] * 2
    assert len({event["id"] for event in record["logEvents"]}) == 2
    assert second[2]["logStream"] == "b"


async def test_each_subscription_gets_what_it_wants() -> None:
    world = World(SUBSCRIPTION, EVERYTHING)
    world.logs.add("F", "a", "START RequestId: 1")
    world.logs.add("F", "a", SAMPLED)
    world.logs.add("other", "a", SAMPLED)
    await world.turn()
    assert {(name, len(record["logEvents"])) for name, _, record in world.events.sent} == {("G", 1), ("H", 2)}


async def test_later_lines_are_sent_later() -> None:
    world = World(SUBSCRIPTION)
    for _ in range(3):
        world.logs.add("F", "a", SAMPLED)
        await world.turn()
    assert len(world.events.sent) == 3


async def test_events_fit_into_an_invocation() -> None:
    world = World(EVERYTHING)
    lines = [base64.b64encode(bytes((n * 7 + i) % 251 for i in range(90_000))).decode() for n in range(40)]
    for line in lines:
        world.logs.add("F", "a", line)
    await world.turn()
    assert len(world.events.sent) > 1
    assert max(world.events.sizes) <= ASYNC_PAYLOAD.value
    assert [e["message"] for _, _, r in world.events.sent for e in r["logEvents"]] == [
        f"{x}\n" for x in lines
    ]


async def test_the_end_drops_what_is_under_way() -> None:
    world = World(SUBSCRIPTION)
    world.logs.add("F", "a", SAMPLED)
    await world.logs.close()
    assert world.events.sent == []


@pytest.mark.parametrize(
    ("line", "is_passed_on"),
    [
        (SAMPLED, True),
        ('{"sampled": true}', True),
        ('{"sampled":false}', False),
        ('{"sampled":"true"}', False),
        ('{"sampled":1}', False),
        ('["sampled",true]', False),
        ('{"a":{"sampled":true}}', False),
        ('{"sampled":true', False),
        ("", False),
    ],
)
def test_a_pattern_matches_as_cloudwatch_s(line: str, is_passed_on: bool) -> None:
    assert TRACED.matches(line) is is_passed_on


@pytest.mark.parametrize("pattern", ["", " ", "[a, b]", "ERROR", '{ $.a = "b" }', "{ $.a.b IS TRUE }"])
def test_other_patterns_match_every_line(pattern: str) -> None:
    assert FilterPattern.parse(pattern).matches("anything")


@given(st.text())
def test_any_line_is_matched_or_not(line: str) -> None:
    assert TRACED.matches(line) in (True, False)


async def test_the_forwarder_reads_the_event() -> None:
    world = World(SUBSCRIPTION)
    world.logs.add("F", "a", SAMPLED)
    await world.turn()
    [(_, _, record)] = world.events.sent
    data = base64.b64encode(gzip.compress(json.dumps(record).encode())).decode()
    assert read_record({"awslogs": {"data": data}}) == record
