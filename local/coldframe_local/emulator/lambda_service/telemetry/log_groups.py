"""Log groups: the latest lines of each, for those who read them as they would read CloudWatch Logs."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple

from coldframe.timing import Clock

_FILE_BYTES: Final = 16 * 1024 * 1024  # of two files for each group; older lines are forgotten


class LogEvent(NamedTuple):
    """One line. number: of the line in its group. at_ms: moment, in milliseconds since 1970."""

    number: int
    at_ms: int
    message: str


class LogGroups:
    """Lines by log group. Used only in the emulator's event loop. now: seconds since 1970.

    Lines are in temporary files: the emulator's memory does not grow with requests.
    """

    def __init__(self, now: Clock, file_bytes: int = _FILE_BYTES) -> None:
        self._now = now
        self._groups: defaultdict[str, _Group] = defaultdict(lambda: _Group(file_bytes))
        self._number = 0

    def create(self, group: str) -> None:
        """An empty group, unless there is one."""
        self._groups[group]

    def add(self, group: str, message: str) -> None:
        """Keeps a line; the oldest lines leave once the group is too large. A full disk loses lines."""
        self._number += 1
        self._groups[group].add(LogEvent(self._number, int(self._now() * 1000), message))

    def close(self) -> None:
        """Forgets all lines."""
        for group in self._groups.values():
            group.close()
        self._groups.clear()

    def __contains__(self, group: object) -> bool:
        return group in self._groups

    def events(self, group: str, start_ms: int, end_ms: int) -> Iterator[LogEvent]:
        """Lines from `start_ms` to `end_ms`, both included, oldest first."""
        return (event for event in self._groups[group].events() if start_ms <= event.at_ms <= end_ms)


class _Group:
    """Lines in two files, of which the older one leaves when the newer one is full."""

    def __init__(self, file_bytes: int) -> None:
        self._file_bytes = file_bytes
        self._files: list[IO[bytes]] = []

    def add(self, event: LogEvent) -> None:
        line = json.dumps(event).encode() + b"\n"
        with suppress(OSError):
            if not self._files or self._files[-1].tell() + len(line) > self._file_bytes:
                self._files.append(TemporaryFile(buffering=0))  # noqa: SIM115 (closed by `close`)
                for older in self._files[:-2]:
                    older.close()
                self._files = self._files[-2:]
            _append(self._files[-1], line)

    def close(self) -> None:
        for file in self._files:
            file.close()

    def events(self) -> Iterator[LogEvent]:
        for file in self._files:
            content = os.pread(file.fileno(), file.tell(), 0)  # in one piece: lines may come meanwhile
            for line in content.splitlines():
                yield LogEvent(*json.loads(line))


def _append(file: IO[bytes], line: bytes) -> None:
    """Writes a whole line or, on a full disk, nothing."""
    start = file.tell()
    if file.write(line) < len(line):
        file.seek(start)
        file.truncate()
