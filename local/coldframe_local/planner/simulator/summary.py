"""A simulated run in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coldframe.capacity.states import ThrottleReason
from coldframe_local.planner.simulator import kernel
from coldframe_local.planner.simulator.simulator import Run, Workload

REASONS = {
    kernel.RESERVED_CONCURRENCY: ThrottleReason.RESERVED_CONCURRENCY,
    kernel.ACCOUNT_CONCURRENCY: ThrottleReason.ACCOUNT_CONCURRENCY,
    kernel.INVOCATION_RATE: ThrottleReason.INVOCATION_RATE,
    kernel.RESERVED_REQUEST_RATE: ThrottleReason.RESERVED_REQUEST_RATE,
}


@dataclass(frozen=True)
class Summary:
    """Counts of invocations, and waiting times of admitted ones.

    cold: with an init phase or a restore. throttled: by AWS's reason.
    p50_ms, p99_ms: init phase or restore and duration, without the network; None when none was admitted.
    """

    invocations: int
    cold: int
    restored: int
    provisioned: int
    spillover: int
    throttled: dict[str, int]
    p50_ms: float | None
    p99_ms: float | None

    @property
    def admitted(self) -> int:
        """Invocations that were not throttled."""
        return self.invocations - sum(self.throttled.values())

    @property
    def cold_share(self) -> float:
        """Quantile over admitted invocations."""
        return self.cold / self.admitted if self.admitted else 0.0

    @property
    def throttled_share(self) -> float:
        """Share of all invocations."""
        return sum(self.throttled.values()) / self.invocations if self.invocations else 0.0


def summarize(run: Run, workload: Workload) -> Summary:
    """The numbers of one run."""
    counts = np.bincount(run.outcomes, minlength=256)
    throttled = {str(reason): int(counts[code]) for code, reason in REASONS.items() if counts[code]}
    admitted = (run.outcomes & kernel.THROTTLED) == 0
    latencies_ms = (run.waits_s[admitted] + workload.durations_s[admitted]) * 1e3
    p50_ms, p99_ms = (
        (float(value) for value in np.percentile(latencies_ms, (50, 99), method="inverted_cdf"))
        if len(latencies_ms)
        else (None, None)
    )
    return Summary(
        invocations=len(workload),
        cold=_with(counts, kernel.COLD),
        restored=_with(counts, kernel.RESTORED),
        provisioned=_with(counts, kernel.ON_PROVISIONED),
        spillover=_with(counts, kernel.SPILLOVER),
        throttled=throttled,
        p50_ms=p50_ms,
        p99_ms=p99_ms,
    )


def _with(counts: np.ndarray[tuple[int], np.dtype[np.int64]], bit: int) -> int:
    return int(sum(counts[code] for code in range(16) if code & bit))
