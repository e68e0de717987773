"""Bounded intake of the server: requests accepted and not yet answered, and their decompressed bodies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coldframe.errors import Overloaded

_AGAIN = "Send the request again after the time in Retry-After, or to another server."


class Intake:
    """Counts of one server, in the event loop's thread.

    changed: called with requests and bytes after each change. expected_wait_s: time until there is room
    again.
    """

    def __init__(
        self,
        requests: int,
        total_bytes: int,
        changed: Callable[[int, int], None],
        expected_wait_s: Callable[[], float],
    ) -> None:
        self._most_requests, self._most_bytes = requests, total_bytes
        self._changed = changed
        self._expected_wait_s = expected_wait_s
        self.requests = self.bytes = 0

    @contextmanager
    def request(self) -> Iterator["Slot"]:
        """A slot for one request, until the end of the `with` block. Raises Overloaded."""
        if self.requests >= self._most_requests:
            raise self._full(f"The server has {self.requests} requests in flight, its limit.")
        self.requests += 1
        slot = Slot(self)
        self._changed(self.requests, self.bytes)
        try:
            yield slot
        finally:
            self.requests -= 1
            self.bytes -= slot.bytes
            self._changed(self.requests, self.bytes)

    def add(self, count: int) -> None:
        """Adds bytes of a decompressed body. Raises Overloaded."""
        if self.bytes + count > self._most_bytes:
            raise self._full(f"The server holds {self.bytes} bytes of requests, close to its limit.")
        self.bytes += count
        self._changed(self.requests, self.bytes)

    def _full(self, problem: str) -> Overloaded:
        return Overloaded(f"{problem} {_AGAIN}", self._expected_wait_s())


class Slot:
    """One request's share of the intake."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self.bytes = 0

    def add(self, count: int) -> None:
        """Adds bytes of its decompressed body. Raises Overloaded."""
        self._intake.add(count)
        self.bytes += count
