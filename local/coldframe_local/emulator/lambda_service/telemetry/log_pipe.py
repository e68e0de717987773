"""Where lines of text go, and how an environment's output becomes lines."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

Log = Callable[[str], None]
StreamLog = Callable[[str, str], None]
"""Gets the name of an environment's log stream, and a line that the environment wrote."""

_PIPE_BYTES = 65536  # as much as a pipe holds
_LINE_BYTES = 1024 * 1024  # a longer line is logged in parts: it may never end


def no_stream(stream: str, line: str) -> None:
    """Keeps no line."""


class SafeLog:
    """Writes lines with `write`. A full disk, or a reader that left (`| head`), ends no invocation.

    The number of lost lines is reported as soon as possible.
    """

    def __init__(self, write: Log) -> None:
        self._write = write
        self._lost = 0

    def __call__(self, line: str) -> None:
        """Writes one line, or loses it."""
        try:
            if self._lost:
                self._write(f"{self._lost} lines of this log are lost: they could not be written.")
                self._lost = 0
            self._write(line)
        except Exception:  # OSError, or ValueError for a closed file; a caller's log may raise others
            self._lost += 1


class LogPipe:
    """The output of an environment, line by line, as the process writes it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._unfinished = b""
        self._reader, self.writer = os.pipe()
        self._open = True
        os.set_blocking(self._reader, False)
        try:
            asyncio.get_running_loop().add_reader(self._reader, self._read)
        except BaseException:
            os.close(self._reader)
            os.close(self.writer)
            raise

    def close_writer(self) -> None:
        """Once the process holds its own copy: the pipe ends when the process does."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def drain(self) -> None:
        """Logs all that was written so far, an unfinished last line included.

        Called before END and REPORT, so that an invocation's lines come before them. One
        read is enough, and safe from a function that writes without end.
        """
        self._read()
        if self._unfinished:
            self._emit(self._unfinished)
            self._unfinished = b""

    def close(self) -> None:
        """Logs the rest and frees both ends."""
        self.drain()
        self.close_writer()
        self._close_reader()

    def _read(self) -> None:
        """Logs the lines at hand, if any."""
        if not self._open:
            return
        try:
            chunk = os.read(self._reader, _PIPE_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._close_reader()
            return
        *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
        for line in lines:
            self._emit(line)
        if len(self._unfinished) >= _LINE_BYTES:
            self._emit(self._unfinished)
            self._unfinished = b""

    def _emit(self, line: bytes) -> None:
        # The runtime client joins the lines of a traceback by \r, which CloudWatch shows as lines.
        for part in line.decode("utf-8", "replace").rstrip("\r").split("\r"):
            self._log(part)

    def _close_reader(self) -> None:
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._reader)
            os.close(self._reader)
