"""Schedules in virtual time."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from coldframe_local.emulator.lambda_service.event_sources.expressions import parse
from coldframe_local.emulator.lambda_service.event_sources.schedules import Schedule, Schedules

pytestmark = pytest.mark.anyio
START_S = datetime(2026, 11, 22, 10, 0, tzinfo=UTC).timestamp()


class Time:
    """A clock that goes on when somebody sleeps. It stops for ever after `end_s`."""

    def __init__(self, end_s: float) -> None:
        self.now_s = START_S
        self._end_s = START_S + end_s

    async def sleep(self, seconds: float) -> None:
        if self.now_s + seconds > self._end_s:
            await asyncio.Event().wait()
        self.now_s += seconds
        await asyncio.sleep(0)


class Sent:
    """Where events go."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self.events: list[tuple[float, str, str | None, Any]] = []

    def send(self, name: str, qualifier: str | None, event: bytes) -> None:
        at_s = self._time.now_s - START_S
        self.events.append((at_s, name, qualifier, json.loads(event)))


def schedule(text: str, **changes: Any) -> Schedule:
    settings = {"arn": "arn:rule", "region": "us-east-1", "account": "1"} | changes
    return Schedule("R", "F", "live", parse(text), text, **settings)


async def run_for(seconds: float, *schedules: Schedule) -> Sent:
    time = Time(seconds)
    sent = Sent(time)
    running = Schedules(schedules, sent, lambda line: None, lambda: time.now_s, time.sleep)
    running.start()
    for _ in count():
        before = len(sent.events), time.now_s
        for _ in range(4 * len(schedules) + 4):
            await asyncio.sleep(0)
        if before == (len(sent.events), time.now_s):
            break
    await running.close()
    return sent


async def test_rate() -> None:
    """A rule's function gets the event of a schedule, once a period, first after one."""
    sent = await run_for(1000, schedule("rate(5 minutes)"))
    assert [event[:3] for event in sent.events] == [(s, "F", "live") for s in (300, 600, 900)]
    event = sent.events[0][3]
    assert event.pop("id")
    assert event == {
        "version": "0",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "1",
        "time": "2026-11-22T10:05:00Z",
        "region": "us-east-1",
        "resources": ["arn:rule"],
        "detail": {},
    }


async def test_input_and_scheduler() -> None:
    """An input is sent as it is; a rate of the scheduler runs at once, too."""
    given = schedule("rate(1 hour)", at_once=True, source="aws.scheduler", event=b'{"a": 1}')
    sent = await run_for(3700, given)
    assert [(event[0], event[3]) for event in sent.events] == [(0, {"a": 1}), (3600, {"a": 1})]


async def test_sleeping_machine() -> None:
    """What was missed while the machine slept runs once."""
    time = Time(100_000)
    sent = Sent(time)
    slept = iter([86_400.0])

    async def sleep(seconds: float) -> None:
        await time.sleep(next(slept, seconds))

    running = Schedules([schedule("rate(1 hour)")], sent, lambda line: None, lambda: time.now_s, sleep)
    running.start()
    while len(sent.events) < 2:
        await asyncio.sleep(0)
    await running.close()
    assert [event[0] for event in sent.events[:2]] == [86_400, 90_000]


async def test_notes() -> None:
    """Whoever starts the emulator reads what runs when first."""
    notes = Schedules([schedule("rate(5 minutes)"), schedule("cron(0 0 1 1 ? 2020)")], Sent(Time(0)), print)
    first, second = notes.notes()
    assert first.startswith("Schedule R, rate(5 minutes), calls F: first at 20")
    assert second == "Schedule R, cron(0 0 1 1 ? 2020), calls F: never again."
