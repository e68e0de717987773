"""Clocks: stages, deadlines, moving averages, the cold/warm mark; and the log line."""

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from coldframe.errors import CallerGone, OutOfTime
from coldframe.schemas import Start

if TYPE_CHECKING:
    from coldframe.scheduling.caller import Caller

Clock = Callable[[], float]
"""Seconds from an arbitrary start, never going back."""

_LATE_S = 0.05


Block = tuple[str, float, float]
"""Name of a stage, and the start and end of one of its `with` blocks, by the clock of its request."""


BLOCKS = "stage_blocks"
"""Field of a log record with `StageTimes.blocks`. It never reaches the log."""


class Stage:
    """One `with` block of a request. A class takes less than half of a generator's time."""

    __slots__ = ("_blocks", "_clock", "_name", "_started")

    def __init__(self, blocks: list[Block], name: str, clock: Clock) -> None:
        self._blocks = blocks
        self._name = name
        self._clock = clock

    def __enter__(self) -> None:
        self._started = self._clock()

    def __exit__(self, *_: object) -> None:
        self._blocks.append((self._name, self._started, self._clock()))


class StageTimes:
    """Times of each named stage of one request, in order. Not safe for threads."""

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self._clock = clock
        self._started = clock()
        self.blocks: list[Block] = []

    def stage(self, name: str) -> "Stage":
        """Adds the time of the `with` block to `name`, whether it succeeds or not."""
        return Stage(self.blocks, name, self._clock)

    @property
    def stages_ms(self) -> dict[str, float]:
        """Milliseconds by stage, all of its blocks together."""
        totals_ms: dict[str, float] = {}
        for name, start, end in self.blocks:
            totals_ms[name] = totals_ms.get(name, 0.0) + (end - start) * 1e3
        return totals_ms

    def total_ms(self) -> float:
        """Milliseconds since this object was created."""
        return (self._clock() - self._started) * 1e3

    def log_fields(self) -> dict[str, object]:
        """Stages and total in milliseconds, and `stage_blocks`, for the log line."""
        rounded = {name: round(ms, 3) for name, ms in self.stages_ms.items()}
        return {
            "stages_ms": rounded,
            "total_ms": round(self.total_ms(), 3),
            BLOCKS: self.blocks,
        }

    def server_timing(self) -> str:
        """Value of the `Server-Timing` header (W3C Server Timing)."""
        times_ms = {**self.stages_ms, "total": self.total_ms()}
        return ", ".join(f"{name};dur={ms:.2f}" for name, ms in times_ms.items())


class StartMark:
    """Returns `cold` once, to the first request that waited for the init phase.

    An environment initialised ahead of traffic (provisioned concurrency, SnapStart) has no such request: it
    is warm from the start.
    Safe for threads: of simultaneous requests, one is the first.
    """

    def __init__(self, is_warm: bool = False) -> None:
        self._taken = threading.Lock()
        if is_warm:
            self._taken.acquire()

    def take(self) -> Start:
        """The mark of this request; later ones are warm."""
        return "cold" if self._taken.acquire(blocking=False) else "warm"


class MovingAverage:
    """An exponentially weighted mean that starts at a prior, and returns to it while unused.

    Safe for threads: of two simultaneous samples one may be lost, which moves the average by no more than
    that sample would have.
    """

    def __init__(self, prior: float) -> None:
        self._prior = prior
        self.value = prior

    def add(self, sample: float) -> None:
        self.value += _WEIGHT * (sample - self.value)

    def fade(self) -> None:
        """Moves the average a little towards the prior, since it is out of date."""
        self.value += _FADE * (self._prior - self.value)

    def forget(self) -> None:
        """Starts again at the prior."""
        self.value = self._prior


_WEIGHT = 0.2  # weight of the latest sample
_FADE = 0.02  # about 35 fades undo half of the deviation


def log_line(**values: object) -> str:
    """One line of JSON for CloudWatch, with the time of day. Callers pass counts and times, never texts."""
    return msgspec.json.encode({"time": time_of_day(time.time()), **values}).decode()


def since_ms(started_s: float) -> float:
    """Milliseconds since a moment of `time.monotonic`, for the log."""
    return round((time.monotonic() - started_s) * 1e3, 1)


def time_of_day(now_s: float) -> str:
    """Seconds since 1970 as RFC 3339 in UTC, with microseconds. `datetime` would cost an import."""
    seconds, microseconds = divmod(round(now_s * 1e6), 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{microseconds:06d}Z"


class Deadline:
    """A moment by which work has to end, and the waiting caller, where a server knows it.

    may_rush: an answer by less work is better than none: see `COLDFRAME_OVERLOAD`.
    is_budget: the caller states the time, and the head `ensemble` leaves out members that do not fit in.
    """

    def __init__(
        self,
        limit_s: float,
        clock: Clock = time.monotonic,
        caller: "Caller | None" = None,
        may_rush: bool = False,
        is_budget: bool = False,
    ) -> None:
        self.may_rush = may_rush
        self.is_budget = is_budget
        self._clock = clock
        self._ends = clock() + limit_s
        self.caller = caller

    def remaining_s(self) -> float:
        """Seconds left; negative after the deadline."""
        return self._ends - self._clock()

    def check(self) -> None:
        """Raises OutOfTime shortly after the deadline, CallerGone when the caller has disconnected.

        Called before the encoder. An answer that is slightly late is better than none. A request that states
        no time is read within the server's own limit.
        """
        if self.caller is not None and self.caller.has_left:
            raise CallerGone("The caller hung up before all texts were read. Send the request again.")
        ends_s = self._ends
        if self.caller is not None and math.isinf(ends_s):
            ends_s = self.caller.due_s
        if self._clock() > ends_s + _LATE_S:
            raise OutOfTime(
                "The time was over before all texts were read. Send fewer or shorter texts at once, or raise"
                " the function's timeout or `budget_ms`."
            )


NO_DEADLINE = Deadline(math.inf)
