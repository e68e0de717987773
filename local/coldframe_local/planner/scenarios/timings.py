"""How long a function works and starts: what was measured, by memory size, or what the user says."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from coldframe.capacity.limits import VCPU
from coldframe_local.planner.traces.report_lines import read_reports
from coldframe_local.planner.traces.trace import Trace, TraceUnusable

PUBLISHED = Path(__file__).parent.parent / "samples" / "coldframe.json"
"""A `BenchCost` of the published raw file; `coldframe bench report --docs` writes it."""

_P99 = 2.3263  # of the normal distribution
_DRAWS = 1024


@dataclass(frozen=True)
class Timings:
    """Samples for one memory size, in seconds: warm durations, init phases and restores."""

    durations_s: tuple[float, ...]
    inits_s: tuple[float, ...]
    restores_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Measured:
    """Timings by memory size in MB. source: where they come from, for the report. peak_mb: what the function
    holds at its peak, 0 where that is not known."""

    by_memory: dict[int, Timings]
    source: str
    peak_mb: int = 0

    def at(self, memory_mb: int) -> Timings:
        """Those of a memory size; of one that was not measured, those of the next by vCPU.

        Below one vCPU durations grow as the share of the processor shrinks; above it they stay, because one
        thread does the work. Init phases stay: they have about two vCPU whatever the size.
        Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html, read 2026-11-20.
        """
        if memory_mb in self.by_memory:
            return self.by_memory[memory_mb]
        nearest = min(self.by_memory, key=lambda size: abs(math.log(size / memory_mb)))
        slower = slowdown(memory_mb, nearest)
        timings = self.by_memory[nearest]
        return Timings(tuple(s * slower for s in timings.durations_s), timings.inits_s, timings.restores_s)

    def instead(
        self, duration_ms: float | None, duration_p99_ms: float | None, init_ms: float | None
    ) -> Measured:
        """Times from the user, at one vCPU; the measured median where the user gives none."""
        warm_ms, inits_ms = duration_ms or self.usual_ms(), init_ms or self.usual_init_ms()
        restore_ms = self.at(VCPU.value).restores_s[0] * 1e3
        return assumed(VCPU.value, warm_ms, duration_p99_ms, inits_ms, restore_ms)

    def usual_ms(self) -> float:
        """Median duration of a warm invocation at one vCPU."""
        return float(np.median(self.at(VCPU.value).durations_s)) * 1e3

    def usual_init_ms(self) -> float:
        """Median duration of an init phase."""
        return float(np.median(self.at(VCPU.value).inits_s)) * 1e3


def slowdown(memory_mb: int, measured_mb: int) -> float:
    """By how much durations grow from the measured size to another one: see `Measured.at`."""
    return max(1.0, VCPU.value / memory_mb) / max(1.0, VCPU.value / measured_mb)


def lognormal_s(p50_ms: float, p99_ms: float | None, seed: int) -> tuple[float, ...]:
    """Draws with this median and this 99th percentile, in seconds; all alike without a percentile."""
    if p99_ms is None or p99_ms <= p50_ms:
        return (p50_ms / 1e3,)
    sigma = math.log(p99_ms / p50_ms) / _P99
    draws = np.random.default_rng(seed).lognormal(math.log(p50_ms / 1e3), sigma, _DRAWS)
    return tuple(map(float, draws))


def assumed(
    memory_mb: int, duration_ms: float, duration_p99_ms: float | None, init_ms: float, restore_ms: float
) -> Measured:
    """Times from the user, for one memory size."""
    timings = Timings(lognormal_s(duration_ms, duration_p99_ms, 0), (init_ms / 1e3,), (restore_ms / 1e3,))
    return Measured(
        {memory_mb: timings},
        f"{round(duration_ms, 1):g} ms warm, {round(init_ms):g} ms of init at {memory_mb} MB",
    )


def of_reports(paths: Sequence[Path]) -> Measured:
    """Times in REPORT lines, by memory size. Raises TraceUnusable without any init phase."""
    by_memory: dict[int, tuple[list[float], list[float]]] = {}
    peak_mb = 0
    for path in paths:
        for report in read_reports(path):
            peak_mb = max(peak_mb, report.peak_mb)
            durations_s, inits_s = by_memory.setdefault(report.memory_mb, ([], []))
            if report.init_s:
                inits_s.append(report.init_s)
            else:
                durations_s.append(report.duration_s)
    complete = {
        memory_mb: Timings(tuple(durations_s), tuple(inits_s))
        for memory_mb, (durations_s, inits_s) in by_memory.items()
        if durations_s and inits_s
    }
    if not complete:
        raise TraceUnusable(
            f"The REPORT lines of {', '.join(map(str, paths))} have no memory size with both a cold and a "
            "warm invocation. Export a log of more time."
        )
    return Measured(complete, f"REPORT lines of {', '.join(path.name for path in paths)}", peak_mb)


def of_benchmark(path: Path) -> Measured:
    """Times that `coldframe bench cost` measured here, at one vCPU: its raw file, or the published one.

    Raises TraceUnusable for another file.
    """
    return read_bench_cost(path).measured(f"coldframe bench cost ({path.name})")


def published(restore_ms: float) -> Measured:
    """Coldframe's own times, measured by `coldframe bench cost`, and the published time of a restore."""
    measured = BenchCost(**json.loads(PUBLISHED.read_text())).measured("Coldframe's own")
    timings = replace(measured.at(VCPU.value), restores_s=(restore_ms / 1e3,))
    return replace(measured, by_memory={VCPU.value: timings})


@dataclass(frozen=True)
class BenchCost:
    """Part of a raw file of `coldframe bench cost` for plans: invocations and cold starts at one vCPU.

    Cold starts are those of a fresh process on that machine; on AWS the image comes on top.
    """

    started: str
    cpu: str
    architecture: str
    peak_mb: int
    inits_ms: list[float]
    durations_ms: list[float]

    def measured(self, whose: str) -> Measured:
        """The same, as the simulator takes it. whose: the first words of its source."""
        durations_s, inits_s = ([ms / 1e3 for ms in times] for times in (self.durations_ms, self.inits_ms))
        warm_ms, p99_ms = np.percentile(self.durations_ms, (50, 99))
        source = (
            f"{whose}: {warm_ms:.1f} ms warm (p99 {p99_ms:.1f}), {np.median(self.inits_ms):.0f} ms of init,"
            f" measured {self.started[:10]} at one vCPU ({VCPU.value} MB) of {self.cpu} ({self.architecture})"
        )
        return Measured({VCPU.value: Timings(tuple(durations_s), tuple(inits_s))}, source, self.peak_mb)

    def json(self) -> str:
        """The form of the sample."""
        return json.dumps(asdict(self), indent=1) + "\n"


def read_bench_cost(path: Path) -> BenchCost:
    """Times in a raw file of `coldframe bench cost`. Raises TraceUnusable for another file."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt") as file:
            run, *records = [json.loads(line) for line in file]
        timed = [
            (one["name"], one["conditions"]["what"], round(one["ms"], 3))
            for one in records
            if _is(one, "timing")
        ]
        peaks_mb = [one["value"] for one in records if _is(one, "fact") and one["name"] == "peak_mb"]
        return BenchCost(
            run["started"],
            run["cpu"],
            run["system"].rpartition(" ")[2],
            math.ceil(max(peaks_mb)),
            [ms for name, what, ms in timed if (name, what) == ("encoder", "cold")],
            [ms for _, what, ms in timed if what == "computed"],
        )
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise TraceUnusable(f"{path} is not a raw file of `coldframe bench cost`: {exc!r}.") from exc


def _is(record: dict[str, object], kind: str) -> bool:
    return record["type"] == kind


def told_by(trace: Trace, measured: Measured) -> str:
    """Where the times of a simulation come from: what the trace does not tell is measured elsewhere."""
    if trace.durations_s is None:
        return measured.source
    return "the trace's" if trace.inits_s else f"the trace's; init phases: {measured.source}"


def durations_for(count: int, timings: Timings, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """A duration for each invocation, drawn from the measured durations."""
    sample = np.random.default_rng(seed).choice(np.asarray(timings.durations_s, np.float32), count)
    return np.asarray(sample, np.float32)
