"""Who waits for an answer, and whether still."""

import threading
from collections.abc import Callable


class Caller:
    """One request's caller. Safe for threads: the door calls `leave` while the work goes on elsewhere.

    bulk: the caller is not in a hurry; set before the work begins.
    """

    def __init__(self, bulk: bool = False) -> None:
        self.bulk = bulk
        self._lock = threading.Lock()
        self._has_left = False
        self._on_leave: Callable[[], None] | None = None

    @property
    def has_left(self) -> bool:
        """Whether nobody waits any more."""
        return self._has_left

    def leave(self) -> None:
        """The caller hangs up: what waits for them is given up."""
        with self._lock:
            self._has_left = True
            call = self._on_leave
        if call is not None:
            call()

    def when_leaving(self, call: Callable[[], None] | None) -> None:
        """Has `leave` call this, at once where the caller has left; None: nothing waits for them now."""
        with self._lock:
            self._on_leave = call
            has_left = self._has_left
        if has_left and call is not None:
            call()
