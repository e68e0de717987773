"""Log groups: the latest lines of each, for those who read them as they would read CloudWatch Logs."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from coldframe.timing import Clock

_KEPT_BYTES: Final = 32 * 1024 * 1024  # of each group; older lines are forgotten


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One line. number: of the line in its group. at_ms: moment, in milliseconds since 1970."""

    number: int
    at_ms: int
    message: str


class LogGroups:
    """Lines by log group. Used only in the emulator's event loop. now: seconds since 1970."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._groups: defaultdict[str, deque[LogEvent]] = defaultdict(deque)
        self._bytes: defaultdict[str, int] = defaultdict(int)
        self._number = 0

    def create(self, group: str) -> None:
        """An empty group, unless there is one."""
        self._groups[group]

    def add(self, group: str, message: str) -> None:
        """Keeps a line; the oldest lines leave once the group is too large."""
        events = self._groups[group]
        self._number += 1
        events.append(LogEvent(self._number, int(self._now() * 1000), message))
        self._bytes[group] += len(message)
        while self._bytes[group] > _KEPT_BYTES:
            self._bytes[group] -= len(events.popleft().message)

    def __contains__(self, group: object) -> bool:
        return group in self._groups

    def events(self, group: str, start_ms: int, end_ms: int) -> Iterator[LogEvent]:
        """Lines from `start_ms` to `end_ms`, both included, oldest first."""
        return (event for event in self._groups[group] if start_ms <= event.at_ms <= end_ms)
