"""Choice of the lever for a traffic: the cheapest that holds the goal, and why each other one lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

import msgspec
import numpy as np

from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe_local.planner.levers.levers import LEVERS
from coldframe_local.planner.levers.workload import Field, fields
from coldframe_local.planner.scenarios.candidates import Candidate, Goal, few_for_p99
from coldframe_local.planner.scenarios.prices import RegionPrices
from coldframe_local.planner.scenarios.scenario import Scenario
from coldframe_local.planner.scenarios.timings import Measured, told_by
from coldframe_local.planner.traces.trace import Trace, TraceUnusable, as_trace

EXPIRIES_MIN = (5, 10, 20, 45)
SCALES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
HEAD = ("lever", "setting", "MB", "USD a month", "cold", "p50, ms", "p99, ms", "throttled", "why")

T = TypeVar("T")


class Progress(Protocol):
    """Shows how far a loop has come: takes its items and their number, and gives the items."""

    def __call__(self, items: Iterable[T], total: int, /) -> Iterable[T]: ...


def _unseen(items: Iterable[T], _total: int) -> Iterable[T]:
    return items


@dataclass(frozen=True)
class Verdict:
    """The best setting of one lever, and the line that says why it won or lost."""

    candidate: Candidate
    why: str


@dataclass(frozen=True)
class Plan:
    """verdicts: one for each lever, the best first. tried: all that was simulated. winner: None when no lever
    holds the goal. requests, requests_a_day: of the trace."""

    goal: Goal
    verdicts: tuple[Verdict, ...]
    tried: tuple[Candidate, ...]
    winner: Candidate | None
    requests_a_day: float
    timings: str
    requests: int


@dataclass(frozen=True)
class Planner:
    """Planner with its inputs. traced_memory_mb: memory size at which the trace's durations were measured.
    further_ms: time that each further request adds to a batch; None when requests cannot wait."""

    measured: Measured
    prices: RegionPrices
    architecture: str
    goal: Goal
    memories_mb: tuple[int, ...]
    base: Scenario
    traced_memory_mb: int
    further_ms: float | None = None

    def plan(self, trace: Trace, progress: Progress = _unseen) -> Plan:
        """Tries every lever at every memory size. Raises TraceUnusable for more than one function."""
        if len(trace.functions) > 1:
            raise TraceUnusable(
                f"The trace has {len(trace.functions)} functions. A plan is for one: set"
                " `function` in a scenario file."
            )
        large_enough = tuple(size for size in self.memories_mb if size >= self.measured.peak_mb)
        if not large_enough:
            raise TraceUnusable(
                f"The function holds {self.measured.peak_mb} MB at its peak, more than any size to try "
                f"({max(self.memories_mb)} MB). Name larger ones with --memory-mb."
            )
        empty = Field(
            trace, self.measured, self.prices, self.architecture, self.base, self.goal, self.further_ms
        )
        all_fields = list(fields(trace, self.traced_memory_mb, large_enough, empty))
        steps = [partial(lever, of) for lever in LEVERS for of in all_fields]
        candidates = [candidate for step in progress(steps, len(steps)) if (candidate := step()) is not None]
        best: dict[str, Candidate] = {}
        for candidate in sorted(candidates, key=self.goal.better):
            best.setdefault(candidate.lever, candidate)
        leader = next(iter(best.values()))
        winner = leader if self.goal.holds(leader) else None
        return Plan(
            self.goal,
            tuple(Verdict(candidate, self._why(candidate, winner)) for candidate in best.values()),
            tuple(empty.tried),
            winner,
            len(trace) / trace.span_s * 86_400,
            told_by(trace, self.measured),
            len(trace),
        )

    def _why(self, candidate: Candidate, winner: Candidate | None) -> str:
        missed = self.goal.missed(candidate)
        if missed:
            return missed
        if winner is None or candidate is winner:
            return "the cheapest that holds the goal"
        return f"{candidate.month_usd - winner.month_usd:,.2f} USD a month more than {winner.lever}"

    def sensitivity(
        self, trace: Trace, winner: Candidate, progress: Progress = _unseen
    ) -> dict[int, Candidate]:
        """The winning lever's best setting, for several minutes that idle environments might be kept."""
        results = {}
        for minutes in progress(EXPIRIES_MIN, len(EXPIRIES_MIN)):
            base = replace(self.base, idle_expiry=IdleExpiry(minutes * 60.0, minutes * 60.0))
            one = replace(self, base=base, memories_mb=(winner.memory_mb,))
            results[minutes] = _only(one, trace, winner.lever)
        return results

    def break_even(
        self, trace: Trace, memory_mb: int, most: int, progress: Progress = _unseen
    ) -> dict[str, list[tuple[float, float]]]:
        """For each lever (requests a day, USD a month) of its best setting that holds the goal, on traffic of
        the same shape and another size; sizes above `most` invocations are left out."""
        curves: dict[str, list[tuple[float, float]]] = {}
        one = replace(self, memories_mb=(memory_mb,), goal=replace(self.goal, budget_usd=None))
        for scale in progress(SCALES, len(SCALES)):
            if not 10 <= len(trace) * scale <= max(most, len(trace)):
                continue
            plan = one.plan(scaled(trace, scale, self.base.seed))
            for verdict in plan.verdicts:
                if one.goal.holds(verdict.candidate):
                    curve = curves.setdefault(verdict.candidate.lever, [])
                    curve.append((plan.requests_a_day, verdict.candidate.month_usd))
        return curves


def scaled(trace: Trace, scale: float, seed: int) -> Trace:
    """Traffic of the same shape: some of its requests, or each of them several times within a minute."""
    source = np.random.default_rng(seed)
    copies = np.full(len(trace), int(scale)) + (source.random(len(trace)) < scale - int(scale))
    rows = np.repeat(np.arange(len(trace)), copies)
    later_s = np.where(np.diff(rows, prepend=-1) == 0, source.uniform(0.0, 60.0, len(rows)), 0.0)
    arrivals_s = np.minimum(trace.arrivals_s[rows] + later_s, trace.span_s)
    durations_s = None if trace.durations_s is None else trace.durations_s[rows]
    return as_trace(
        arrivals_s, list(trace.functions), durations_s, span_s=trace.span_s, inits_s=trace.inits_s
    )


def as_json(plan: Plan) -> str:
    """The plan without its single trials."""
    return msgspec.json.encode(
        {
            "goal": plan.goal,
            "requests_a_day": plan.requests_a_day,
            "timings": plan.timings,
            "winner": plan.winner,
            "levers": plan.verdicts,
        }
    ).decode()


def lines_of(plan: Plan) -> list[tuple[str, ...]]:
    """The cells below HEAD: one line for each lever, the best first."""
    return [
        (
            candidate.lever,
            candidate.setting,
            str(candidate.memory_mb),
            f"{candidate.month_usd:,.2f}",
            f"{candidate.cold_share:.3%}",
            f"{candidate.p50_ms:,.1f}",
            f"{candidate.p99_ms:,.1f}",
            f"{candidate.throttled_share:.2%}",
            verdict.why,
        )
        for verdict in plan.verdicts
        for candidate in (verdict.candidate,)
    ]


def table(plan: Plan) -> str:
    """Source of the durations, one line for each lever, the best first, and the parameters to deploy."""
    cells = [HEAD, *lines_of(plan)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if column in (0, 1, 8) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join([f"durations: {plan.timings}", "", *lines, "", *what_to_do(plan)]) + "\n"


def what_to_do(plan: Plan) -> list[str]:
    """How to have the winner, line by line."""
    if plan.winner is None:
        return [
            *_few_requests(plan),
            "No lever holds the goal. The first line comes nearest; ask for less, or for other memory sizes.",
        ]
    lines = [*_few_requests(plan), *plan.winner.notes]
    if plan.winner.overrides:
        lines.append("sam deploy --parameter-overrides " + " ".join(plan.winner.overrides))
    return lines


def _few_requests(plan: Plan) -> list[str]:
    few = few_for_p99(plan.requests)
    return [f"Each p99 is of {plan.requests} requests{few}. Give a longer trace."] if few else []


def _only(planner: Planner, trace: Trace, lever: str) -> Candidate:
    return next(
        verdict.candidate for verdict in planner.plan(trace).verdicts if verdict.candidate.lever == lever
    )
