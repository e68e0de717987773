"""Stage times, the cold/warm mark, and the one log line of a request."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from coldframe.api.contract import log_times, server_timing
from coldframe.api.schemas import Start
from coldframe.errors import OutOfTime

Clock = Callable[[], float]
"""Seconds from an arbitrary start, never going back."""

_LATE_S = 0.1


class StageTimes:
    """Milliseconds spent in each named stage of one request, in the order met."""

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self._clock = clock
        self._started = clock()
        self.stages_ms: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time of the `with` block to `name`, whether it succeeds or not."""
        started = self._clock()
        try:
            yield
        finally:
            spent_ms = (self._clock() - started) * 1e3
            self.stages_ms[name] = self.stages_ms.get(name, 0.0) + spent_ms

    def spent_ms(self, *names: str) -> float:
        """Milliseconds spent in these stages together."""
        return sum(self.stages_ms.get(name, 0.0) for name in names)

    def total_ms(self) -> float:
        """Milliseconds since this object was made."""
        return (self._clock() - self._started) * 1e3

    def rounded(self) -> dict[str, object]:
        """Stages and total in milliseconds, for the log line."""
        return log_times(self.stages_ms, self.total_ms())

    def server_timing(self) -> str:
        """Value of the `Server-Timing` header (W3C Server Timing)."""
        return server_timing(self.stages_ms, self.total_ms())


class StartMark:
    """Says `cold` once, to the first request that waited for the init phase.

    An environment initialised ahead of traffic (provisioned concurrency,
    SnapStart) has no such request: it is warm from the start.
    """

    def __init__(self, is_warm: bool = False) -> None:
        self._next: Start = "warm" if is_warm else "cold"

    def take(self) -> Start:
        """The mark of this request; the next ones are warm."""
        start, self._next = self._next, "warm"
        return start


def log_line(**values: object) -> str:
    """One line of JSON for CloudWatch. Callers pass counts and times, never texts."""
    return msgspec.json.encode(values).decode()


class Deadline:
    """A point in time by which something has to be over."""

    def __init__(self, limit_s: float, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._ends = clock() + limit_s

    def remaining_s(self) -> float:
        """Seconds left; negative when it is over."""
        return self._ends - self._clock()

    def check(self) -> None:
        """Raises OutOfTime when it has been over for a moment.

        For what comes before the encoder. An answer that is a moment late is better than none.
        """
        if self.remaining_s() < -_LATE_S:
            raise OutOfTime(
                "The time was over before all texts were read. Send fewer or shorter texts at once, or raise"
                " the function's timeout or `budget_ms`."
            )


NO_DEADLINE = Deadline(math.inf)
