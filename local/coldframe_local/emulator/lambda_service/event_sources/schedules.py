"""Schedules of a template: each sends its function an asynchronous event whenever it is due.

As EventBridge does. A scheduled rule (`Schedule`) with a rate runs first one period after it came to be; a
schedule of EventBridge Scheduler (`ScheduleV2`) at once.
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html, read 2026-11-22.
Not imitated: time that passes while the emulator does not run is not made up for, and flexible windows.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo

import msgspec

from coldframe.timing import Clock
from coldframe_local.emulator.lambda_service.event_sources.async_invocations import Sleep
from coldframe_local.emulator.lambda_service.event_sources.expressions import Expression
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log

# A machine that slept finds out at most so late that something is due.
_LONGEST_NAP_S = 30.0
_UTC = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a function is sent what.

    name: of the rule or schedule. function, qualifier: what is called. text: the expression as it is written.
    event: JSON that the function gets; None for the event that says that it was time.
    arn: of the rule or schedule. source: who sends, in AWS's words. at_once: a rate runs first at the start.
    """

    name: str
    function: str
    qualifier: str | None
    expression: Expression
    text: str
    arn: str
    region: str
    account: str
    source: str = "aws.events"
    event: bytes | None = None
    at_once: bool = False
    time_zone: tzinfo = _UTC

    def payload(self, due: datetime) -> bytes:
        """The event of one run. due: when it had to be."""
        if self.event is not None:
            return self.event
        return msgspec.json.encode(
            {
                "version": "0",
                "id": str(uuid.uuid4()),
                "detail-type": "Scheduled Event",
                "source": self.source,
                "account": self.account,
                "time": f"{due.astimezone(_UTC):%Y-%m-%dT%H:%M:%SZ}",
                "region": self.region,
                "resources": [self.arn],
                # The scheduler sends its detail as text.
                "detail": "{}" if self.source == "aws.scheduler" else {},
            }
        )


class Events(Protocol):
    """Where asynchronous events are sent."""

    def send(self, name: str, qualifier: str | None, event: bytes) -> None:
        """Queues an event."""


class Schedules:
    """Runs schedules until it is closed. now: seconds since 1970. Belongs to one event loop."""

    def __init__(
        self,
        schedules: Sequence[Schedule],
        events: Events,
        log: Log,
        now: Clock = time.time,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._schedules = schedules
        self._events = events
        self._log = log
        self._now = now
        self._sleep = sleep
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begins to count."""
        self._tasks = [asyncio.create_task(self._run(schedule)) for schedule in self._schedules]

    async def close(self) -> None:
        """Sends nothing more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def notes(self) -> Iterator[str]:
        """A line about each: what it calls, and when first."""
        for each in self._schedules:
            due = self.next_due(each)
            when = f"first at {due:%Y-%m-%d %H:%M:%S %Z}" if due is not None else "never again"
            yield f"Schedule {each.name}, {each.text}, calls {each.function}: {when}."

    def next_due(self, schedule: Schedule) -> datetime | None:
        """When a schedule that begins now runs first; None: never."""
        now = self._time(schedule)
        before = now - timedelta(microseconds=1) if schedule.at_once else now
        return schedule.expression.next_after(before, now)

    async def _run(self, schedule: Schedule) -> None:
        start = self._time(schedule)
        due = self.next_due(schedule)
        while due is not None:
            while (wait_s := due.timestamp() - self._now()) > 0:
                await self._sleep(min(wait_s, _LONGEST_NAP_S))
            self._log(f"Schedule {schedule.name} ({schedule.text}) sends {schedule.function} its event.")
            self._events.send(schedule.function, schedule.qualifier, schedule.payload(due))
            # What was missed is missed: a machine that slept all night runs it once.
            due = schedule.expression.next_after(max(due, self._time(schedule)), start)

    def _time(self, schedule: Schedule) -> datetime:
        return datetime.fromtimestamp(self._now(), schedule.time_zone)
