"""CloudWatch's metrics of Lambda, counted here: for Prometheus, the console and the summary at exit."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable

from coldframe.capacity.admission import State
from coldframe.capacity.prices import Bill
from coldframe_local.emulator.lambda_service.lambda_types import Invoked, Percentiles
from coldframe_local.emulator.lambda_service.report import InvocationStatus

_WINDOW = 1000  # values behind a percentile
_RATE_S = 10

BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper bounds of a histogram's buckets, included; one more bucket has the rest."""


class Latest:
    """The latest values of something, for its percentiles."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=_WINDOW)

    def add(self, value: float) -> None:
        """One more, the oldest one forgotten."""
        self._values.append(value)

    def percentiles(self) -> Percentiles:
        """The smallest value that the given share of all does not exceed (nearest rank)."""
        ordered = sorted(self._values)

        def at(share: float) -> float:
            return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0

        return Percentiles(at(0.50), at(0.95), at(0.99), len(ordered))


class Histogram:
    """How many values are in each bucket, and their sum."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0

    def add(self, value_s: float) -> None:
        """One more."""
        self.counts[bisect_left(BUCKETS_S, value_s)] += 1
        self.sum_s += value_s


class Rate:
    """How often something happened in the last ten seconds, counted second by second."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, int]] = deque()

    def add(self, now: float) -> None:
        """It happened."""
        second = int(now)
        count = self._seconds.pop()[1] if self._seconds and self._seconds[-1][0] == second else 0
        self._seconds.append((second, count + 1))
        self._forget(now)

    def per_s(self, now: float) -> float:
        """Events per second."""
        self._forget(now)
        return sum(count for _, count in self._seconds) / _RATE_S

    def _forget(self, now: float) -> None:
        while self._seconds and self._seconds[0][0] <= int(now) - _RATE_S:
            self._seconds.popleft()


class FunctionMetrics:
    """Counters of one function. state: returns the state of its admission rules."""

    def __init__(self, function: str, state: Callable[[], State], bill: Bill) -> None:
        self.function = function
        self.state = state
        self.bill = bill
        self.arrivals = 0
        self.invocations = 0
        self.errors = 0
        self.throttles = 0
        self.cold_starts = 0
        self.provisioned_invocations = 0
        self.spillover_invocations = 0
        self.most_concurrent = 0
        self.arrival_rate = Rate()
        self.throttle_rate = Rate()
        self.latency_ms = Latest()
        self.duration_ms = Latest()
        self.init_ms = Latest()
        self.duration_histogram = Histogram()
        self.init_histogram = Histogram()

    def arrived(self, now: float) -> None:
        """An invocation is asked for."""
        self.arrivals += 1
        self.arrival_rate.add(now)

    def observe_concurrency(self) -> None:
        """The state has changed."""
        self.most_concurrent = max(self.most_concurrent, self.state().in_flight)

    def throttled(self, now: float) -> None:
        """It is refused."""
        self.throttles += 1
        self.throttle_rate.add(now)

    def invoked(self, invoked: Invoked, latency_ms: float) -> None:
        """It is over. latency_ms: since it was asked for."""
        self.invocations += 1
        self.errors += invoked.outcome.status is not InvocationStatus.SUCCESS
        self.cold_starts += invoked.cold
        self.provisioned_invocations += invoked.provisioned
        self.spillover_invocations += invoked.spillover
        self.latency_ms.add(latency_ms)
        self.duration_ms.add(invoked.duration_ms)
        self.duration_histogram.add(invoked.duration_ms / 1000)
        if invoked.init_ms is not None:
            self._initialized(invoked.init_ms)
        if invoked.restore_ms is not None:
            self.bill.restored(invoked.memory_size_mb)
        self.bill.invocation(invoked.billed_ms, invoked.memory_size_mb, provisioned=invoked.provisioned)

    def provisioned_initialized(self, init_ms: float, memory_mb: int) -> None:
        """A provisioned environment is up."""
        self._initialized(init_ms)
        self.bill.provisioned_init(init_ms, memory_mb)

    @property
    def provisioned_utilization(self) -> float:
        """The share of provisioned environments that are busy, 0 to 1."""
        state = self.state()
        allocated = sum(provisioned.allocated for provisioned in state.provisioned.values())
        return state.provisioned_in_flight / allocated if allocated else 0.0

    def _initialized(self, init_ms: float) -> None:
        self.init_ms.add(init_ms)
        self.init_histogram.add(init_ms / 1000)
