"""The log: lines of JSON on standard output, written by a thread of their own.

A slow reader, a full disk or a closed pipe delays no request: lines that do not fit are dropped, and the log
reports their number.
"""

import queue
import sys
import threading
import time
from collections.abc import Callable

from coldframe.timing import log_line, since_ms

_WAITING = 10_000  # lines


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class Log:
    """Safe for threads: any number of threads write lines, which stay whole.

    sender: also gets each line, in the log's thread, and never raises.
    """

    def __init__(self, write: Callable[[str], None] = _write) -> None:
        self._write = write
        self.sender: Callable[[str], None] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def __call__(self, line: str) -> None:
        """Queues one line, or drops it."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._lost += 1  # two threads may count one line: the number is approximate

    def event(self, event: str, *, duration_ms: float, **values: object) -> None:
        """Logs an event of the server itself. duration_ms: time of the work that it reports."""
        self(log_line(event=event, **values, duration_ms=duration_ms))

    def close(self, patience_s: float = 2.0) -> None:
        """Writes queued lines as fast as the reader takes them."""
        try:
            self._lines.put(None, timeout=patience_s)
        except queue.Full:
            return
        self._thread.join(patience_s)

    def _run(self) -> None:
        whole_s = time.monotonic()  # since then no line was lost, or each loss is reported
        while (line := self._lines.get()) is not None:
            lines = [line]
            while not self._lines.empty() and len(lines) < 256:
                following = self._lines.get()
                if following is None:
                    self._send(lines)
                    self._try("\n".join(lines) + "\n")
                    return
                lines.append(following)
            self._send(lines)
            if self._lost:
                lost, self._lost = self._lost, 0
                lines.append(log_line(event="log-lines-lost", lines=lost, duration_ms=since_ms(whole_s)))
                whole_s = time.monotonic()
            self._try("\n".join(lines) + "\n")

    def _send(self, lines: list[str]) -> None:
        if self.sender is not None:
            for line in lines:
                self.sender(line)

    def _try(self, text: str) -> None:
        try:
            self._write(text)
        except (OSError, ValueError):  # ValueError: a closed file
            self._lost += text.count("\n")
