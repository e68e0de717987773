"""Cost of warmers on Lambda: their levels held by pings or provisioned, in the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.limits import ALLOCATION_DELAY
from coldframe.capacity.states import Limits
from coldframe.warming.costs import ping_usd, provisioned_usd
from coldframe.warming.policy import HoldCosts
from coldframe_bench.warming import keeping
from coldframe_bench.warming.contest import Contest
from coldframe_bench.warming.demand import Demand, Levels
from coldframe_local.planner.levers.schedules import slot_by_slot
from coldframe_local.planner.scenarios.bill import usage
from coldframe_local.planner.scenarios.pings import with_pings
from coldframe_local.planner.scenarios.prices import MONTH_S, RegionPrices
from coldframe_local.planner.simulator import kernel
from coldframe_local.planner.simulator.simulator import Function, Pool, Setup, Workload, simulate

_DRAWS = 4096
_MB_PER_GB = 1024


@dataclass(frozen=True)
class Terms:
    """Size and cost of an environment. cold_usd: value of one avoided cold start."""

    memory_mb: int
    init_s: float
    prices: RegionPrices
    architecture: str
    cold_usd: float
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """One policy on one function. usd: of the span of the trace, for requests, warming and the warmer."""

    function: str
    policy: str
    requests: int
    cold: int
    usd: float
    span_s: float


def outcomes(demands: Iterable[Demand], terms: Terms) -> Iterator[Outcome]:
    """Outcome of every policy on every function. A level is requested at the start of its slot."""
    gb = terms.memory_mb / _MB_PER_GB
    of_lambda = terms.prices.lambda_[terms.architecture]
    by_ping = ping_usd(gb, of_lambda.on_demand_gb_s_usd, terms.prices.request_usd)
    for demand in demands:
        contest = Contest(demand, gb)
        peaks, most = demand.peaks, int(demand.peaks.max(initial=0))
        yield _played(demand, "on demand", np.zeros_like(peaks), terms)
        for name, count in (("1", 1), ("5", 5), ("as many as its peak", most)):
            fixed = np.where(keeping.keep_alive(peaks, 1) >= count, 0, count)
            yield _played(demand, f"pings: {name}, at a fixed rate", fixed, terms)
        costs = HoldCosts(by_ping, terms.cold_usd)
        yield _played(demand, "pings: predicted (ours)", contest.pinged(costs), terms)
        if of_lambda.provisioned_gb_s_usd is None:  # nothing is known of its price in this region
            continue
        yield _played(demand, "provisioned: target tracking", contest.tracked, terms, pinged=False)
        provided = provisioned_usd(gb, of_lambda.provisioned_gb_s_usd, demand.slot_s)
        costs = HoldCosts(provided, terms.cold_usd)
        yield _played(demand, "provisioned: predicted (ours)", contest.predicted(costs), terms, pinged=False)


def outcome_table(outcomes: Sequence[Outcome], cold_usd: float) -> str:
    """A row for each policy, summed over all functions. cold_usd: what one cold start is worth."""
    width = max(len(outcome.policy) for outcome in outcomes)
    rows = [f"{'':{width}}{'cold share':>14}{'USD':>14}{'USD a month':>14}{'+ cold starts':>16}"]
    for policy in dict.fromkeys(outcome.policy for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.policy == policy]
        requests, cold = sum(outcome.requests for outcome in mine), sum(outcome.cold for outcome in mine)
        usd = sum(outcome.usd for outcome in mine)
        month = sum(outcome.usd / outcome.span_s for outcome in mine) * MONTH_S
        rows.append(
            f"{policy:{width}}{cold / max(1, requests):14.3%}{usd:14.4f}{month:14.2f}"
            f"{month * (usd + cold * cold_usd) / usd:16.2f}"
        )
    return "\n".join(rows)


def _played(demand: Demand, policy: str, levels: Levels, terms: Terms, pinged: bool = True) -> Outcome:
    """The simulator's account of one policy on one function."""
    pings = levels if pinged else np.zeros_like(levels)
    with_rounds = with_pings(Workload(demand.arrivals_s, demand.durations_s), pings, demand.slot_s)
    workload, is_request = with_rounds.workload, with_rounds.requests
    expiry = IdleExpiry()
    setup = Setup(
        (Pool((terms.init_s,)),),
        (Function(tuple(islice(expiry.draws(terms.seed), _DRAWS))),),
        Limits(allocation_delay_s=ALLOCATION_DELAY.value),
        () if pinged else slot_by_slot(levels.tolist(), demand.slot_s),
    )
    run = simulate(workload, setup)
    used = usage(run, workload, setup, terms.memory_mb, demand.span_s)
    if levels.any():
        used = used.and_on_demand(with_rounds.rounds, with_rounds.warmer_gb_s, with_rounds.calls_usd)
    usd = used.month_usd(terms.prices, terms.architecture) * demand.span_s / MONTH_S
    cold = int(((run.outcomes[is_request] & kernel.COLD) != 0).sum())
    return Outcome(demand.name, policy, int(is_request.sum()), cold, usd, demand.span_s)
