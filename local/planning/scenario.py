"""One configuration played on a trace: what the simulator is asked, and what it answers, for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import cast

import msgspec

from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.limits import CONCURRENCY, MAX_AGE
from coldframe.capacity.states import Limits
from coldframe.capacity.switches import ALL_RATES, Switches
from local.planning.bill import Usage, usage
from local.planning.pings import with_pings
from local.planning.prices import RegionPrices
from local.planning.simulator import Change, Engine, Function, Pool, Run, Setup, Workload, simulate
from local.planning.summary import Summary, summarize
from local.planning.timings import Measured, durations_for
from local.planning.traces.trace import Trace

_DRAWS = 4096  # of idle times; environments beyond take them again


@dataclass(frozen=True)
class Scenario:
    """The settings of every function of a trace.

    warm: environments that pings hold, and changes in the course of time, are those of an only function.
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
    warm: int = 0
    synchronous: bool = True
    seed: int = 0


@dataclass(frozen=True)
class Played:
    """A scenario's outcome. run: of its requests, pings left out."""

    scenario: Scenario
    summary: Summary
    usage: Usage
    environments: int
    timings_source: str
    run: Run

    def month_usd(self, prices: RegionPrices, architecture: str) -> float:
        """Of a month like the trace."""
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
        }
        return msgspec.json.encode(numbers).decode()


def play(trace: Trace, measured: Measured, scenario: Scenario, engine: str = "auto") -> Played:
    """The scenario on the trace. Durations are the trace's own, or else drawn from the measured ones."""
    timings = measured.at(scenario.memory_mb)
    durations_s = trace.durations_s
    if durations_s is None:
        durations_s = durations_for(len(trace), timings, scenario.seed)
    workload = Workload(trace.arrivals_s, durations_s, trace.of if len(trace.functions) > 1 else None)
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
    setup = Setup(
        tuple(replace(pool, function=number) for number in range(len(trace.functions))),
        (function,) * len(trace.functions),
        scenario.switches.of(
            Limits(account_concurrency=scenario.account_concurrency, max_age_s=scenario.max_age_s)
        ),
        scenario.changes,
    )
    span_s = max(trace.span_s, 1.0)
    pinged = with_pings(workload, scenario.warm, span_s) if scenario.warm else None
    everything = pinged.workload if pinged else workload
    run = simulate(everything, setup, cast(Engine, engine))
    used = usage(run, everything, setup, scenario.memory_mb, span_s)
    started = int(run.started.sum())
    if pinged:
        run = run.of(pinged.requests)
        used = used.and_on_demand(pinged.rounds, pinged.warmer_gb_s)
    source = "the trace" if trace.durations_s is not None else measured.source
    return Played(scenario, summarize(run, workload), used, started, source, run)


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
        ("p50, p99", f"{_ms(summary.p50_ms)}, {_ms(summary.p99_ms)}"),
        ("environments started", f"{played.environments:,}"),
        ("USD a month", f"{played.month_usd(prices, architecture):,.2f} ({architecture}, without free tier)"),
    ]
    width = max(len(name) for name, _ in rows)
    return "".join(f"{name:{width}}  {value}\n" for name, value in rows)


def _ms(value: float | None) -> str:
    return "none" if value is None else f"{value:,.1f} ms"
