"""How much the server takes in: requests accepted and not yet answered, and their bodies, decompressed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coldframe.errors import Overloaded

_AGAIN = "Send the request again after the time in Retry-After, or to another server."


class Room:
    """Counts of one server, in the event loop's thread.

    changed: called with requests and bytes after each change. expected_wait_s: until there is room again.
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
    def request(self) -> Iterator["Place"]:
        """A place for one request, until the end of the `with` block. Raises Overloaded."""
        if self.requests >= self._most_requests:
            raise self._full(f"The server works on {self.requests} requests, as many as it takes.")
        self.requests += 1
        place = Place(self)
        self._changed(self.requests, self.bytes)
        try:
            yield place
        finally:
            self.requests -= 1
            self.bytes -= place.bytes
            self._changed(self.requests, self.bytes)

    def add(self, count: int) -> None:
        """Bytes of a body, decompressed. Raises Overloaded."""
        if self.bytes + count > self._most_bytes:
            raise self._full(f"The server holds {self.bytes} bytes of requests, nearly as many as it takes.")
        self.bytes += count
        self._changed(self.requests, self.bytes)

    def _full(self, found: str) -> Overloaded:
        return Overloaded(f"{found} {_AGAIN}", self._expected_wait_s())


class Place:
    """What one request takes of the room."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.bytes = 0

    def add(self, count: int) -> None:
        """Bytes of its body, decompressed. Raises Overloaded."""
        self._room.add(count)
        self.bytes += count
