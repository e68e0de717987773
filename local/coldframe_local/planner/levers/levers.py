"""Every way to hold cold starts down, each with a search for its best setting on a trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from coldframe.capacity.limits import VCPU
from coldframe_local.planner.levers.batching import batched
from coldframe_local.planner.levers.prediction import predicted
from coldframe_local.planner.levers.schedules import levels_by_hour, target_tracking, timetable
from coldframe_local.planner.levers.workload import Field
from coldframe_local.planner.scenarios.candidates import Candidate, Goal
from coldframe_local.planner.scenarios.pings import MOST_PINGED
from coldframe_local.planner.scenarios.prices import MONTH_S
from coldframe_local.planner.scenarios.scenario import play
from coldframe_local.planner.simulator.concurrency import means
from coldframe_local.planner.simulator.summary import summarize
from coldframe_local.planner.traces.trace import as_trace

_SHARES = (0.5, 0.9, 0.99, 1.0)
_LEAST_MANAGED_MB = 2048
_CONTAINER_GB = 2.0
_GB = 1024
_BATCH_SIZES, _WINDOWS_S = (2, 5, 10, 50), (1, 2, 5, 10, 30, 60, 300)  # an SQS window has whole seconds


def on_demand(field: Field) -> Candidate:
    """Environments start with the requests that need them."""
    return field.on_lambda("on demand", "", field.base, ("ColdStartMode=OnDemand", "WarmEnvironments=0"))


def snapstart(field: Field) -> Candidate | None:
    """Environments start from a snapshot."""
    if not field.prices.has_snapstart:
        return None
    scenario = replace(field.base, snapstart=True)
    return field.on_lambda("SnapStart", "", scenario, ("ColdStartMode=SnapStart", "WarmEnvironments=0"))


def pings(field: Field) -> Candidate:
    """The fewest environments held by pings that hold the goal."""

    def held(count: int) -> Candidate:
        overrides = ("ColdStartMode=OnDemand", f"WarmEnvironments={count}")
        return field.on_lambda("pings", f"{count} held", replace(field.base, warm=count), overrides)

    return _fewest(held, min(MOST_PINGED, int(field.minutes.max()) + 1), field.goal)


def provisioned(field: Field) -> Candidate | None:
    """The least provisioned concurrency that holds the goal, day and night."""
    if not field.prices.has_provisioned(field.architecture):
        return None

    def kept(count: int) -> Candidate:
        overrides = (*_provisioned(count, count), "WarmEnvironments=0")
        return field.on_lambda("provisioned", f"{count}", replace(field.base, provisioned=count), overrides)

    return _fewest(kept, int(field.minutes.max()), field.goal)


def scheduled(field: Field) -> Candidate | None:
    """A level of provisioned concurrency for each hour of the day, from the trace's own hours."""
    if not field.prices.has_provisioned(field.architecture):
        return None

    def kept(share: float) -> Candidate:
        levels = levels_by_hour(field.minutes, share)
        scenario = replace(field.base, provisioned=levels[0], changes=timetable(levels, field.trace.span_s))
        least, most = min(levels), max(levels)
        return field.on_lambda(
            "scheduled",
            f"{least} to {most} by the hour",
            scenario,
            (*_provisioned(max(1, least), max(1, most)), "WarmEnvironments=0"),
            "scheduled actions by the hour (UTC): " + ", ".join(map(str, levels)),
        )

    return min((kept(share) for share in _SHARES), key=field.goal.better)


def tracked(field: Field) -> Candidate | None:
    """Provisioned concurrency by use, as Application Auto Scaling sets it."""
    if not field.prices.has_provisioned(field.architecture):
        return None
    mean = means(field.workload.arrivals_s, field.workload.durations_s, field.trace.span_s)

    def kept(least: int) -> Candidate:
        most = max(least, int(field.minutes.max()))
        scenario = replace(field.base, provisioned=least, changes=target_tracking(mean, least, most))
        overrides = (*_provisioned(least, most), "WarmEnvironments=0")
        return field.on_lambda("target tracking", f"{least} to {most} at 70 %", scenario, overrides)

    return _fewest(kept, int(field.minutes.max()), field.goal)


def managed(field: Field) -> Candidate | None:
    """Lambda Managed Instances: each vCPU does one invocation at a time at full speed."""
    prices = field.prices.managed.get(field.architecture)
    if prices is None or field.base.memory_mb < _LEAST_MANAGED_MB:
        return None
    hourly_usd = prices.instance_h_usd * (1 + prices.fee_share)
    requests_usd = len(field.trace) / field.trace.span_s * MONTH_S * field.prices.request_usd

    def running(instances: int) -> Candidate:
        month_usd = instances * hourly_usd * MONTH_S / 3600 + requests_usd
        return field.always_on(
            "managed instances",
            f"{instances} × {prices.instance}",
            instances * prices.vcpu,
            month_usd,
            field.base.memory_mb,
            "not a parameter of the template; traffic that doubles within 5 minutes may be refused",
        )

    return _fewest(running, _most_servers(field), field.goal, least=prices.least_instances)


def container(field: Field) -> Candidate | None:
    """Containers of one vCPU that are always on."""
    prices = field.prices.container.get(field.architecture)
    if prices is None or field.base.memory_mb != VCPU.value:
        return None
    hourly_usd = prices.vcpu_h_usd + _CONTAINER_GB * prices.gb_h_usd

    def running(count: int) -> Candidate:
        note = "not a parameter of the template; without load balancer, and one alone has no stand-in"
        month_usd = count * hourly_usd * MONTH_S / 3600
        memory_mb = int(_CONTAINER_GB * _GB)
        return field.always_on("container", f"{count} × 1 vCPU", count, month_usd, memory_mb, note)

    return _fewest(running, _most_servers(field), field.goal)


def microvms(field: Field) -> Candidate | None:
    """Lambda MicroVMs of one vCPU that never suspend, since nothing is known of how they resume."""
    prices = field.prices.microvm.get(field.architecture)
    if prices is None or field.base.memory_mb != VCPU.value:
        return None
    second_usd = prices.vcpu_s_usd + _CONTAINER_GB * prices.gb_s_usd

    def running(count: int) -> Candidate:
        note = "not a parameter of the template; nothing scales them"
        month_usd = count * second_usd * MONTH_S
        memory_mb = int(_CONTAINER_GB * _GB)
        return field.always_on("MicroVMs", f"{count} × 1 vCPU", count, month_usd, memory_mb, note)

    return _fewest(running, _most_servers(field), field.goal)


def batches(field: Field) -> Candidate | None:
    """Several requests in one invocation, for work that may wait in a queue."""
    further_ms = field.further_ms
    if further_ms is None:
        return None

    def gathered(size: int, window_s: float) -> Candidate:
        mine = batched(field.workload, size, window_s, further_ms / 1e3)
        trace = as_trace(
            mine.workload.arrivals_s,
            field.trace.functions,
            mine.workload.durations_s,
            span_s=field.trace.span_s,
            inits_s=field.trace.inits_s,
        )
        played = play(trace, field.measured, replace(field.base, synchronous=False))
        summary = summarize(*mine.by_request(played.run))
        candidate = Candidate(
            "batches",
            f"{size} within {window_s:g} s",
            field.base.memory_mb,
            played.month_usd(field.prices, field.architecture),
            summary.cold_share,
            summary.p50_ms or 0.0,
            summary.p99_ms or 0.0,
            summary.throttled_share,
            (),
            ("not a parameter of the template: an SQS queue as event source, whose price is not counted",),
        )
        field.tried.append(candidate)
        return candidate

    settings = [
        (size, float(window_s))
        for size in _BATCH_SIZES
        for window_s in _WINDOWS_S
        if window_s * 1e3 < field.goal.p99_ms
    ]
    return min((gathered(*setting) for setting in settings), key=field.goal.better, default=None)


LEVERS: tuple[Callable[[Field], Candidate | None], ...] = (
    on_demand,
    pings,
    provisioned,
    scheduled,
    tracked,
    predicted,
    snapstart,
    batches,
    managed,
    microvms,
    container,
)


def _fewest(of: Callable[[int], Candidate], most: int, goal: Goal, least: int = 1) -> Candidate:
    """The smallest number that holds the goal but for its price, or else the best of those tried.

    More environments never do worse for callers, so halving finds it.
    """
    unpriced = replace(goal, budget_usd=None)
    best = of(least)
    if unpriced.holds(best) or most <= least:
        return best
    tried = [best, of(most)]
    low, high = least, most
    while high - low > 1:
        middle = (low + high) // 2
        tried.append(of(middle))
        low, high = (low, middle) if unpriced.holds(tried[-1]) else (middle, high)
    return min(tried, key=unpriced.better)


def _most_servers(field: Field) -> int:
    return max(1, int(field.minutes.max()))


def _provisioned(least: int, most: int) -> tuple[str, ...]:
    return (
        "ColdStartMode=Provisioned",
        f"ProvisionedConcurrencyMin={least}",
        f"ProvisionedConcurrencyMax={most}",
    )
