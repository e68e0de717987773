"""How much the server takes in: requests that are accepted and not yet answered, and their bodies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from coldframe.errors import RequestError

RETRY_AFTER_S = 1


class Full(RequestError):
    """The server has as many requests, or bodies, as it takes at once."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = "Overloaded"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} Send the request again after a moment, or to another server.",
            {"retry-after": str(RETRY_AFTER_S)},
        )


class Room:
    """Counts of one server, in the event loop's thread.

    changed: called with requests and bytes after each change.
    """

    def __init__(self, requests: int, total_bytes: int, changed: Callable[[int, int], None]) -> None:
        self._most_requests, self._most_bytes = requests, total_bytes
        self._changed = changed
        self.requests = self.bytes = 0

    @contextmanager
    def request(self) -> Iterator["Place"]:
        """A place for one request, until the end of the `with` block. Raises Full."""
        if self.requests >= self._most_requests:
            raise Full(f"The server works on {self.requests} requests, as many as it takes.")
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
        """Bytes of a body that have arrived. Raises Full."""
        if self.bytes + count > self._most_bytes:
            raise Full(f"The server holds {self.bytes} bytes of requests, nearly as many as it takes.")
        self.bytes += count
        self._changed(self.requests, self.bytes)


class Place:
    """What one request takes of the room."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.bytes = 0

    def add(self, count: int) -> None:
        """Bytes of its body that have arrived. Raises Full."""
        self._room.add(count)
        self.bytes += count
