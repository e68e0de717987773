"""The caller of a request: its time of arrival, its promise, and whether it still waits."""

import math
import threading
import time
from collections.abc import Callable

from coldframe.scheduling.jobs import Job
from coldframe.scheduling.limits import Limits


class Caller:
    """One request's caller. Safe for threads: the server calls `leave` while the work runs in another thread.

    bulk: the caller is not in a hurry; set before the work begins.
    arrived_s: moment of arrival, by the clock of the passes.
    job: the last rows computed for the request, used in its own thread.
    promised_s: the moment by which the last rows were promised; None without rows.
    """

    def __init__(
        self,
        bulk: bool = False,
        arrived_s: float | None = None,
        limits: Limits | None = None,
        when_read: Callable[[], None] = lambda: None,
        most_s: float = math.inf,
    ) -> None:
        """arrived_s: None means now. limits: longest waits of callers that state no time; None: no limit.

        most_s: the caller's time limit, where the server reads it before the request.

        when_read: called, perhaps more than once, after the texts are tokenized, when only passes are left to
        do.
        """
        self.bulk = bulk
        self.arrived_s = time.monotonic() if arrived_s is None else arrived_s
        self.has_read = when_read
        self.job: Job | None = None
        self.promised_s: float | None = None
        self._limits = limits
        self._most_s = most_s
        self._lock = threading.Lock()
        self._has_left = False
        self._on_leave: Callable[[], None] | None = None

    @property
    def due_s(self) -> float:
        """The moment by which a request without a longer limit is answered or refused; else infinity."""
        if self._limits is None:
            return math.inf
        return self.arrived_s + min(self._limits.patience_s(self.bulk), self._most_s)

    def begin_part(self, now_s: float) -> None:
        """A part of the request is done: its next part gets a new promise."""
        self.arrived_s = now_s

    @property
    def has_left(self) -> bool:
        """Whether the caller has disconnected."""
        return self._has_left

    def leave(self) -> None:
        """The caller disconnects: its waiting work is cancelled."""
        with self._lock:
            self._has_left = True
            call = self._on_leave
        if call is not None:
            call()

    def when_leaving(self, call: Callable[[], None] | None) -> None:
        """Sets a function for `leave` to call, at once if the caller has left; None: nothing waits for it
        now.
        """
        with self._lock:
            self._on_leave = call
            has_left = self._has_left
        if has_left and call is not None:
            call()
