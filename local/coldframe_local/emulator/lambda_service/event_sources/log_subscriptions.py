"""Subscriptions of log groups: lines of a function's log invoke another function, a moment later.

As CloudWatch Logs does: each event holds lines of one stream, compressed, and is asynchronous.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html#LambdaFunctionExample, read
2026-11-25. Not imitated: other patterns than `{ $.field IS TRUE }`, which then match every line; lines that
are under way when the emulator ends; and that CloudWatch Logs may deliver an event twice.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from coldframe.timing import Clock
from coldframe_local.emulator.lambda_service.event_sources.async_invocations import Sleep
from coldframe_local.emulator.lambda_service.event_sources.schedules import Events
from coldframe_local.emulator.lambda_service.settings import ACCOUNT_ID

_GATHERED_S = 1.0
_EVENT_BYTES = 512 * 1024  # of lines, so that the compressed event fits into an asynchronous invocation
_IS_TRUE = re.compile(r"\{\s*\$\.([A-Za-z_]\w*)\s+IS\s+TRUE\s*\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class FilterPattern:
    """Lines to pass on: JSON whose field is true; every line where there is no field."""

    field: str = ""

    @classmethod
    def parse(cls, text: str) -> FilterPattern:
        """A pattern as a template has it."""
        match = _IS_TRUE.fullmatch(text.strip())
        return cls(match[1] if match else "")

    @property
    def is_everything(self) -> bool:
        return not self.field

    def matches(self, line: str) -> bool:
        """Whether a line is passed on."""
        if self.is_everything:
            return True
        if f'"{self.field}"' not in line:
            return False
        try:
            fields = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeError):
            return False
        return isinstance(fields, dict) and fields.get(self.field) is True


@dataclass(frozen=True, slots=True)
class LogSubscription:
    """Lines of a log group for a function.

    sources: functions that write to the group. function, qualifier: what is invoked.
    """

    name: str
    group: str
    sources: frozenset[str]
    function: str
    qualifier: str | None
    pattern: FilterPattern = FilterPattern()


@dataclass(frozen=True, slots=True)
class LogEvent:
    """A line with the time at which it was written, in milliseconds since 1970."""

    timestamp: int
    message: str


def awslogs_event(subscription: LogSubscription, stream: str, lines: Sequence[LogEvent]) -> bytes:
    """The event of an invocation, in JSON."""
    record = {
        "messageType": "DATA_MESSAGE",
        "owner": ACCOUNT_ID,
        "logGroup": subscription.group,
        "logStream": stream,
        "subscriptionFilters": [subscription.name],
        "logEvents": [
            {
                "id": f"{line.timestamp:032d}{number:024d}",
                "timestamp": line.timestamp,
                "message": line.message,
            }
            for number, line in enumerate(lines)
        ],
    }
    data = base64.b64encode(gzip.compress(msgspec.json.encode(record), compresslevel=1)).decode()
    return msgspec.json.encode({"awslogs": {"data": data}})


class LogSubscriptions:
    """Gathers lines and sends them on, in tasks of their own. Belongs to one event loop.

    now: seconds since 1970. sleep: how lines are waited for.
    """

    def __init__(
        self,
        subscriptions: Sequence[LogSubscription],
        events: Events,
        now: Clock = time.time,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._subscriptions = subscriptions
        self._events = events
        self._now = now
        self._sleep = sleep
        self._lines: defaultdict[tuple[LogSubscription, str], list[LogEvent]] = defaultdict(list)
        self._sending: asyncio.Task[None] | None = None

    def add(self, function: str, stream: str, line: str) -> None:
        """Keeps a line of a function's log for each subscription of it."""
        for subscription in self._subscriptions:
            if function in subscription.sources and subscription.pattern.matches(line):
                event = LogEvent(int(self._now() * 1e3), line + "\n")
                self._lines[subscription, stream].append(event)
                if self._sending is None:
                    self._sending = asyncio.create_task(self._send_later())

    def notes(self) -> Iterator[str]:
        """A line about each: whose lines it passes on, and to whom."""
        for each in self._subscriptions:
            sources = ", ".join(sorted(each.sources))
            yield f"Log lines of {sources} invoke {each.function}."

    async def close(self) -> None:
        """Drops what is gathered."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait({self._sending})

    async def _send_later(self) -> None:
        await self._sleep(_GATHERED_S)
        gathered, self._lines = self._lines, defaultdict(list)
        self._sending = None
        for (subscription, stream), lines in gathered.items():
            for part in _parts(lines):
                self._events.send(
                    subscription.function, subscription.qualifier, awslogs_event(subscription, stream, part)
                )


def _parts(lines: Sequence[LogEvent]) -> Iterator[list[LogEvent]]:
    """Lines in parts that fit into an event; a line that is too long is a part of its own."""
    part: list[LogEvent] = []
    size = 0
    for line in lines:
        bytes_ = len(line.message.encode())
        if part and size + bytes_ > _EVENT_BYTES:
            yield part
            part, size = [], 0
        part.append(line)
        size += bytes_
    if part:
        yield part
