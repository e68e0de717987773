"""Who waits for an answer, since when, and whether still."""

import math
import threading
import time
from collections.abc import Callable

from coldframe.scheduling.jobs import Job
from coldframe.scheduling.limits import Limits


class Caller:
    """One request's caller. Safe for threads: the door calls `leave` while the work goes on elsewhere.

    bulk: the caller is not in a hurry; set before the work begins.
    arrived_s: when the request came in, by the clock of the passes.
    job: the last rows that were computed for the request, in its own thread.
    promised_s: the moment by which the last rows were promised; None: no rows were.
    """

    def __init__(
        self,
        bulk: bool = False,
        arrived_s: float | None = None,
        limits: Limits | None = None,
        when_read: Callable[[], None] = lambda: None,
        most_s: float = math.inf,
    ) -> None:
        """arrived_s: None: now. limits: how long a caller waits who states no time; None: for ever.

        most_s: what the caller stated, where that is known before the request is read.

        when_read: called, perhaps more than once, when the texts are cut, and only passes are left to do.
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
        """The moment by which a request that states no longer time is answered, or refused; else infinity."""
        if self._limits is None:
            return math.inf
        return self.arrived_s + min(self._limits.patience_s(self.bulk), self._most_s)

    def begin_part(self, now_s: float) -> None:
        """A part of the request is done: the next one, if any, is promised anew."""
        self.arrived_s = now_s

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
