"""Workload of the levers: the traffic of one function at one memory size, with all candidates tried on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from coldframe_local.planner.scenarios.candidates import Candidate, Goal
from coldframe_local.planner.scenarios.prices import RegionPrices
from coldframe_local.planner.scenarios.scenario import Scenario, play
from coldframe_local.planner.scenarios.timings import Measured, durations_for, slowdown
from coldframe_local.planner.simulator.concurrency import peaks
from coldframe_local.planner.simulator.server_queue import queue_waits
from coldframe_local.planner.simulator.simulator import Floats, Workload
from coldframe_local.planner.traces.trace import Trace


@dataclass
class Field:
    """Workload of all levers: one function's trace, at one memory size.

    further_ms: time that each further request adds to a batch; None when requests cannot be batched.
    tried: every candidate, in the order in which they were tried.
    """

    trace: Trace
    measured: Measured
    prices: RegionPrices
    architecture: str
    base: Scenario
    goal: Goal
    further_ms: float | None = None
    tried: list[Candidate] = field(default_factory=list)

    @cached_property
    def workload(self) -> Workload:
        """Arrivals, and durations at this memory size."""
        durations_s = self.trace.durations_s
        if durations_s is None:
            durations_s = durations_for(
                len(self.trace), self.measured.at(self.base.memory_mb), self.base.seed
            )
        return Workload(self.trace.arrivals_s, durations_s)

    @cached_property
    def minutes(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The most requests at once, of each minute."""
        return peaks(self.workload.arrivals_s, self.workload.durations_s, 60.0, self.trace.span_s)

    def on_lambda(
        self, lever: str, setting: str, scenario: Scenario, overrides: tuple[str, ...], *notes: str
    ) -> Candidate:
        """Simulates a scenario, and keeps what came of it."""
        trace = replace(self.trace, durations_s=self.workload.durations_s)
        played = play(trace, self.measured, scenario)
        summary = played.summary
        common = (f"MemorySize={scenario.memory_mb}", f"Architecture={self.architecture}")
        candidate = Candidate(
            lever,
            setting,
            scenario.memory_mb,
            played.month_usd(self.prices, self.architecture),
            summary.cold_share,
            summary.p50_ms or 0.0,
            summary.p99_ms or 0.0,
            summary.throttled_share,
            (*overrides, *common),
            (*notes, f"energy of a thousand requests: {played.usage.energy_of_a_thousand()}"),
        )
        self.tried.append(candidate)
        return candidate

    def always_on(
        self, lever: str, setting: str, servers: int, month_usd: float, memory_mb: int, *notes: str
    ) -> Candidate:
        """Servers with a queue, and keeps what came of it."""
        latencies_ms = (queue_waits(self.workload, servers) + self.workload.durations_s) * 1e3
        p50_ms, p99_ms = np.percentile(latencies_ms, (50, 99), method="inverted_cdf")
        candidate = Candidate(
            lever, setting, memory_mb, month_usd, 0.0, float(p50_ms), float(p99_ms), 0.0, (), notes
        )
        self.tried.append(candidate)
        return candidate


def fields(
    trace: Trace, traced_memory_mb: int, memories_mb: tuple[int, ...], template: Field
) -> Iterator[Field]:
    """A field for each memory size. The trace's durations, and `further_ms`, hold at `traced_memory_mb`."""
    for memory_mb in memories_mb:
        slower = slowdown(memory_mb, traced_memory_mb)
        durations_s: Floats | None = trace.durations_s
        scaled = (
            trace if durations_s is None else replace(trace, durations_s=np.float32(slower) * durations_s)
        )
        further_ms = None if template.further_ms is None else template.further_ms * slower
        base = replace(template.base, memory_mb=memory_mb)
        yield replace(template, trace=scaled, base=base, further_ms=further_ms, tried=template.tried)
