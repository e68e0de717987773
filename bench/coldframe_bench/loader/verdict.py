"""Raw answers and an objective to a verdict: whether it held, and whether to believe it (pure)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coldframe_bench.records.quantiles import Interval, quantile
from coldframe_bench.records.raw_files import Answer

_OK = 200
_LOADER_SHARE = 0.1  # of the latency that is quoted may be the loader's own
_LOADER_MS = 1.0  # or this much, whatever the latency
_NO_ANSWERS = 0.001  # more requests than this without any answer: something is broken


@dataclass(frozen=True)
class Slo:
    """A percentile of latency with its bound, and the share of requests that must succeed."""

    percentile: float = 0.99
    bound_ms: float = 300.0
    success: float = 0.999


@dataclass(frozen=True)
class Point:
    """One offered rate. late_ms: percentile of how late requests were sent. reasons: why it is INVALID."""

    target: str
    offered_rps: float
    throughput_rps: float
    requests: int
    success: float
    p50_ms: Interval
    p95_ms: Interval
    p99_ms: Interval
    late_ms: float
    held: bool
    reasons: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """VALID, or INVALID with all that is wrong and what to change."""
        return f"INVALID: {' '.join(self.reasons)}" if self.reasons else "VALID"


def judge(answers: Sequence[Answer], slo: Slo, warm_up_s: float = 0.0, loader_ms: float = 0.0) -> Point:
    """The verdict on the answers of one target at one offered rate.

    warm_up_s: requests due before are left out. loader_ms: what the loader added against the null target,
    at the same percentile and at least this rate.
    """
    counted = [answer for answer in answers if answer.due_s >= warm_up_s]
    right = [answer for answer in counted if answer.status == _OK]
    # A failure counts as slow as the slowest answer: it never makes a run look quicker.
    slowest = max(answer.latency_ms for answer in counted)
    latencies = [answer.latency_ms if answer.status == _OK else slowest for answer in counted]
    tail = quantile(latencies, slo.percentile)
    late_ms = quantile([(answer.sent_s - answer.due_s) * 1e3 for answer in counted], slo.percentile).value
    success = len(right) / len(counted)
    ends_s = max(answer.due_s + answer.latency_ms / 1e3 for answer in counted)
    return Point(
        target=answers[0].target,
        offered_rps=answers[0].offered_rps,
        throughput_rps=len(right) / (ends_s - min(answer.due_s for answer in counted)),
        requests=len(counted),
        success=success,
        p50_ms=quantile(latencies, 0.5),
        p95_ms=quantile(latencies, 0.95),
        p99_ms=quantile(latencies, 0.99),
        late_ms=late_ms,
        held=tail.value <= slo.bound_ms and success >= slo.success,
        reasons=tuple(_reasons(counted, tail, max(late_ms, loader_ms))),
    )


def _reasons(counted: Sequence[Answer], tail: Interval, loader_ms: float) -> list[str]:
    reasons = []
    if tail.high == float("inf"):
        reasons.append(f"{len(counted)} requests are too few for this percentile: raise --requests.")
    if loader_ms > max(_LOADER_MS, _LOADER_SHARE * tail.value):
        reasons.append(
            f"The loader itself takes {loader_ms:.1f} ms at this percentile: lower the rate, or run it"
            " on cores of its own."
        )
    broken = [answer.error for answer in counted if answer.status == 0 and answer.error != "timeout"]
    if len(broken) > _NO_ANSWERS * len(counted):
        reasons.append(f"{len(broken)} requests got no answer ({broken[0]}): see the target's log.")
    return reasons


def search_peak(
    holds: Callable[[float], bool], start_rps: float, precision: float = 0.1, limit_rps: float = float("inf")
) -> float:
    """The highest rate at which `holds`, to within `precision`; 0 where it never does.

    Doubles or halves from `start_rps` until the answer changes or `limit_rps` is reached, then
    halves the span between.
    """
    low, high = start_rps, start_rps * 2
    while not holds(low):
        low, high = low / 2, low
        if low < start_rps / 1000:
            return 0.0
    while high == low * 2:
        if high > limit_rps:
            return low
        if not holds(high):
            break
        low, high = high, high * 2
    while high > low * (1 + precision):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
