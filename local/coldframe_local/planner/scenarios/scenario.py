"""One configuration played on a trace: what the simulator is asked, and what it answers, for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import cast

import msgspec
import numpy as np

from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.limits import ALLOCATION_DELAY, CONCURRENCY, MAX_AGE
from coldframe.capacity.states import Limits
from coldframe.capacity.switches import ALL_RATES, Switches
from coldframe_local.planner.scenarios.bill import Usage, usage
from coldframe_local.planner.scenarios.candidates import few_for_p99
from coldframe_local.planner.scenarios.pings import steady, with_pings
from coldframe_local.planner.scenarios.prices import RegionPrices
from coldframe_local.planner.scenarios.timings import Measured, Timings, durations_for, told_by
from coldframe_local.planner.simulator.provisioning import PROVISION, RECYCLE, RESERVE
from coldframe_local.planner.simulator.simulator import (
    Change,
    Engine,
    Function,
    Pool,
    Run,
    Setup,
    Workload,
    simulate,
)
from coldframe_local.planner.simulator.summary import Summary, summarize
from coldframe_local.planner.traces.trace import Trace, TraceUnusable

_DRAWS = 4096  # of idle times; environments beyond take them again


ALL = -1  # instead of a function's or a pool's number in a change: every one


@dataclass(frozen=True)
class Scenario:
    """The settings of every function of a trace.

    versions: of each function, with their shares of its requests, as an alias with weights sends them; empty
    for a single one. crash_share: of the invocations that end with the loss of their environment.
    warm: environments that pings hold, of an only function; or pings: how many in each round.
    changes: in the course of time; `ALL` is every function, or every version.
    """

    memory_mb: int
    provisioned: int = 0
    snapstart: bool = False
    reserved: int | None = None
    account_concurrency: int = CONCURRENCY.value
    idle_expiry: IdleExpiry = field(default_factory=IdleExpiry)
    max_age_s: float | None = MAX_AGE.value
    switches: Switches = ALL_RATES
    changes: tuple[Change, ...] = ()
    versions: tuple[tuple[str, float], ...] = ()
    crash_share: float = 0.0
    warm: int = 0
    pings: tuple[int, ...] = ()
    synchronous: bool = True
    seed: int = 0


@dataclass(frozen=True)
class Played:
    """A scenario's outcome. run: of its requests, pings left out. by_version: of each version's requests,
    where there is more than one."""

    scenario: Scenario
    summary: Summary
    usage: Usage
    environments: int
    timings_source: str
    run: Run
    by_version: dict[str, Summary] = field(default_factory=dict)

    def month_usd(self, prices: RegionPrices, architecture: str) -> float:
        """Figures for a month like the trace."""
        return self.usage.month_usd(prices, architecture)

    def json(self, prices: RegionPrices, architecture: str) -> str:
        """Every number, by name."""
        numbers = asdict(self.summary) | {
            "cold_share": self.summary.cold_share,
            "throttled_share": self.summary.throttled_share,
            "environments": self.environments,
            "span_s": self.usage.span_s,
            "usage": asdict(self.usage),
            "month_usd": self.month_usd(prices, architecture),
            "timings": self.timings_source,
            "versions": {name: asdict(of) for name, of in self.by_version.items()},
        }
        return msgspec.json.encode(numbers).decode()


def play(trace: Trace, measured: Measured, scenario: Scenario, engine: str = "auto") -> Played:
    """The scenario on the trace. Durations are the trace's own, or else drawn from the measured ones."""
    timings = measured.at(scenario.memory_mb)
    workload, setup = workload_of(trace, measured, scenario), _setup(trace, timings, scenario)
    span_s = max(trace.span_s, 1.0)
    pinged = None
    if scenario.pings:
        pinged = with_pings(workload, np.array(scenario.pings, np.int64))
    elif scenario.warm:
        pinged = with_pings(workload, steady(workload, scenario.warm, span_s))
    everything = pinged.workload if pinged else workload
    run = simulate(everything, setup, cast(Engine, engine))
    used = usage(run, everything, setup, scenario.memory_mb, span_s)
    started = int(run.started.sum())
    if pinged:
        run = run.of(pinged.requests)
        used = used.and_on_demand(pinged.rounds, pinged.warmer_gb_s, pinged.calls_usd)
    by_version = _by_version(run, workload, scenario)
    return Played(
        scenario, summarize(run, workload), used, started, told_by(trace, measured), run, by_version
    )


def workload_of(trace: Trace, measured: Measured, scenario: Scenario) -> Workload:
    """The invocations, each with its pool: the versions of the first function, then those of the next one."""
    durations_s = trace.durations_s
    if durations_s is None:
        durations_s = durations_for(len(trace), measured.at(scenario.memory_mb), scenario.seed)
    source = np.random.default_rng((scenario.seed, 2))
    pools = trace.of if len(trace.functions) > 1 else None
    if scenario.versions:
        if len(trace.functions) * len(scenario.versions) > np.iinfo(np.uint16).max:
            raise TraceUnusable(
                "The trace has too many functions for this number of versions. Set `function` in a"
                " scenario file to one of them."
            )
        shares = np.array([share for _, share in scenario.versions])
        versions = source.choice(len(shares), len(trace), p=shares / shares.sum())
        pools = (trace.of.astype(np.int64) * len(shares) + versions).astype(np.uint16)
    crashes = source.random(len(trace)) < scenario.crash_share if scenario.crash_share else None
    return Workload(trace.arrivals_s, durations_s, pools, crashes)


def _setup(trace: Trace, timings: Timings, scenario: Scenario) -> Setup:
    functions, versions = len(trace.functions), max(1, len(scenario.versions))
    function = Function(
        tuple(islice(scenario.idle_expiry.draws(scenario.seed), _DRAWS)),
        scenario.reserved,
        scenario.synchronous,
    )
    pool = Pool(
        trace.inits_s or timings.inits_s,
        provisioned=scenario.provisioned,
        snapstart=scenario.snapstart,
        restores_s=timings.restores_s or timings.inits_s,
    )
    limits = Limits(
        account_concurrency=scenario.account_concurrency,
        max_age_s=scenario.max_age_s,
        allocation_delay_s=ALLOCATION_DELAY.value,
    )
    counts = {PROVISION: functions * versions, RESERVE: functions, RECYCLE: functions}
    return Setup(
        tuple(replace(pool, function=number // versions) for number in range(functions * versions)),
        (function,) * functions,
        scenario.switches.of(limits),
        tuple(
            replace(change, of=of)
            for change in scenario.changes
            for of in (range(counts[change.kind]) if change.of == ALL else (change.of,))
        ),
    )


def _by_version(run: Run, workload: Workload, scenario: Scenario) -> dict[str, Summary]:
    if not scenario.versions or workload.pools is None:
        return {}
    of = workload.pools % len(scenario.versions)
    return {
        name: summarize(
            run.of(of == number),
            Workload(workload.arrivals_s[of == number], workload.durations_s[of == number]),
        )
        for number, (name, _) in enumerate(scenario.versions)
    }


def table(played: Played, prices: RegionPrices, architecture: str) -> str:
    """The numbers that an engineer asks for, one a line."""
    summary, span_s = played.summary, played.usage.span_s
    rows = [
        ("invocations", f"{summary.invocations:,} in {span_s / 3600:,.1f} h"),
        ("durations", played.timings_source),
        ("cold", f"{summary.cold:,} ({summary.cold_share:.3%})"),
        *([("of these restored", f"{summary.restored:,}")] if summary.restored else []),
        *([("on provisioned", f"{summary.provisioned:,}")] if summary.provisioned else []),
        *([("spillover", f"{summary.spillover:,}")] if summary.spillover else []),
        ("throttled", f"{summary.invocations - summary.admitted:,} ({summary.throttled_share:.3%})"),
        *((f"  {reason}", f"{count:,}") for reason, count in summary.throttled.items()),
        ("p50, p99", f"{_ms(summary.p50_ms)}, {_ms(summary.p99_ms)}{few_for_p99(summary.admitted)}"),
        *(
            (f"{name}: cold, p99", f"{of.cold:,} of {of.admitted:,} ({of.cold_share:.3%}), {_ms(of.p99_ms)}")
            for name, of in played.by_version.items()
        ),
        ("environments started", f"{played.environments:,}"),
        ("USD a month", f"{played.month_usd(prices, architecture):,.2f} ({architecture}, without free tier)"),
    ]
    width = max(len(name) for name, _ in rows)
    return "".join(f"{name:{width}}  {value}\n" for name, value in rows)


def _ms(value: float | None) -> str:
    return "none" if value is None else f"{value:,.1f} ms"
