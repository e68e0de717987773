"""One setting of a function beside its present one, on the same traffic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from coldframe_local.planner.levers.prediction import predicted_pings
from coldframe_local.planner.scenarios.prices import RegionPrices
from coldframe_local.planner.scenarios.scenario import Scenario, play, workload_of
from coldframe_local.planner.scenarios.timings import Measured, slowdown
from coldframe_local.planner.traces.trace import Trace


class Lever(StrEnum):
    """A way to hold cold starts down that can be moved by hand."""

    ON_DEMAND = "on demand"
    PINGS = "pings"
    PREDICTED = "predicted pings"
    PROVISIONED = "provisioned"
    SNAPSTART = "SnapStart"


@dataclass(frozen=True)
class Setting:
    """level: environments that pings hold, at most where they are predicted, or that are provisioned.

    It has no meaning for other levers.
    """

    lever: Lever
    level: int
    memory_mb: int


@dataclass(frozen=True)
class Outcome:
    """Result for callers, and its cost. p50_ms, p99_ms: of admitted requests; None without any."""

    invocations: int
    cold_share: float
    throttled_share: float
    p50_ms: float | None
    p99_ms: float | None
    month_usd: float


def simulated(
    trace: Trace,
    measured: Measured,
    measured_mb: int,
    base: Scenario,
    setting: Setting,
    prices: RegionPrices,
    architecture: str,
) -> Outcome:
    """The setting on the trace. base: everything else. The trace's own durations hold at `measured_mb`.

    Python's engine: the first answer comes at once, where numba would compile. Raises PricesUnusable.
    """
    level = max(0, setting.level)
    scenario = replace(
        base,
        memory_mb=setting.memory_mb,
        provisioned=level if setting.lever is Lever.PROVISIONED else 0,
        snapstart=setting.lever is Lever.SNAPSTART,
        warm=level if setting.lever is Lever.PINGS else 0,
    )
    if trace.durations_s is not None:
        slower = slowdown(setting.memory_mb, measured_mb)
        trace = replace(trace, durations_s=(trace.durations_s * slower).astype(trace.durations_s.dtype))
    if setting.lever is Lever.PREDICTED:
        workload = workload_of(trace, measured, scenario)
        pings = predicted_pings(
            workload, trace.span_s, setting.memory_mb, prices, architecture, max(1, level)
        )
        scenario = replace(scenario, pings=pings)
    played = play(trace, measured, scenario, "python")
    summary = played.summary
    return Outcome(
        summary.invocations,
        summary.cold_share,
        summary.throttled_share,
        summary.p50_ms,
        summary.p99_ms,
        played.month_usd(prices, architecture),
    )
