"""What warmers would come to on Lambda: their levels held by pings or provisioned, in the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.states import Limits
from coldframe.warming.costs import PING_S, ping_usd, provisioned_usd
from coldframe.warming.policy import HoldCosts
from local.planning import kernel
from local.planning.bill import usage
from local.planning.prices import RegionPrices
from local.planning.provisioning import PROVISION
from local.planning.simulator import Change, Function, Pool, Setup, Workload, simulate
from local.planning.warming import keeping
from local.planning.warming.contest import Contest
from local.planning.warming.demand import Demand, Levels

# Of each round of the warmer: its run, and one call of CloudWatch for one metric.
# https://aws.amazon.com/cloudwatch/pricing/, read 2026-11-22
_ROUND_S, _ROUND_GB, _CALL_USD = 0.8, 0.5, 0.01e-3
_DRAWS = 4096
_MB_PER_GB = 1024


@dataclass(frozen=True)
class Terms:
    """What an environment is like and costs. cold_usd: what one cold start is worth."""

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
    """Of every policy on every function. A level is held from the start of its slot on."""
    gb = terms.memory_mb / _MB_PER_GB
    of_lambda = terms.prices.lambda_[terms.architecture]
    by_ping = ping_usd(gb, of_lambda.on_demand_gb_s_usd, terms.prices.request_usd)
    for demand in demands:
        contest = Contest(demand, gb)
        needed, most = demand.needed, int(demand.needed.max(initial=0))
        yield _played(demand, "on demand", np.zeros_like(needed), terms)
        for name, count in (("1", 1), ("5", 5), ("as many as its peak", most)):
            fixed = np.where(keeping.keep_alive(needed, 1) >= count, 0, count)
            yield _played(demand, f"pings: {name}, at a fixed rate", fixed, terms)
        costs = HoldCosts(by_ping, terms.cold_usd)
        yield _played(demand, "pings: predicted (ours)", contest.pinged(costs), terms)
        if of_lambda.provisioned_gb_s_usd is None:  # nothing is known of its price in this region
            continue
        yield _played(demand, "provisioned: target tracking", contest.tracked, terms, pinged=False)
        provided = provisioned_usd(gb, of_lambda.provisioned_gb_s_usd, demand.slot_s)
        costs = HoldCosts(provided, terms.cold_usd)
        yield _played(demand, "provisioned: predicted (ours)", contest.predicted(costs), terms, pinged=False)


def outcome_table(found: Sequence[Outcome], cold_usd: float) -> str:
    """A row for each policy, summed over all functions. cold_usd: what one cold start is worth."""
    width = max(len(outcome.policy) for outcome in found)
    rows = [f"{'':{width}}{'cold share':>14}{'USD':>14}{'USD a month':>14}{'+ cold starts':>16}"]
    for policy in dict.fromkeys(outcome.policy for outcome in found):
        mine = [outcome for outcome in found if outcome.policy == policy]
        requests, cold = sum(outcome.requests for outcome in mine), sum(outcome.cold for outcome in mine)
        usd = sum(outcome.usd for outcome in mine)
        month = sum(outcome.usd / outcome.span_s for outcome in mine) * 730 * 3600
        rows.append(
            f"{policy:{width}}{cold / max(1, requests):14.3%}{usd:14.4f}{month:14.2f}"
            f"{month * (usd + cold * cold_usd) / usd:16.2f}"
        )
    return "\n".join(rows)


def _played(demand: Demand, policy: str, held: Levels, terms: Terms, pinged: bool = True) -> Outcome:
    """The simulator's account of one policy on one function."""
    pings = held if pinged else np.zeros_like(held)
    workload, is_request = _with_pings(demand, pings)
    expiry = IdleExpiry()
    setup = Setup(
        (Pool((terms.init_s,)),),
        (Function(tuple(islice(expiry.draws(terms.seed), _DRAWS))),),
        Limits(),
        () if pinged else _changes(held, demand.slot_s),
    )
    run = simulate(workload, setup)
    used = usage(run, workload, setup, terms.memory_mb, demand.span_s)
    warmed = bool(held.any())
    rounds = len(held) if warmed else 0
    used = used.and_on_demand(rounds, rounds * _ROUND_S * _ROUND_GB, rounds * _CALL_USD)
    months = demand.span_s / (730 * 3600)
    usd = used.month_usd(terms.prices, terms.architecture) * months
    cold = int(((run.outcomes[is_request] & kernel.COLD) != 0).sum())
    return Outcome(demand.name, policy, int(is_request.sum()), cold, usd, demand.span_s)


def _with_pings(demand: Demand, held: Levels) -> tuple[Workload, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """So many pings at once at the start of each slot, among the requests."""
    moments_s = np.repeat(np.arange(len(held)) * demand.slot_s, held)
    arrivals_s = np.concatenate([demand.arrivals_s, moments_s])
    durations_s = np.concatenate([demand.durations_s, np.full(len(moments_s), PING_S, np.float32)])
    order = np.argsort(arrivals_s, kind="stable")
    workload = Workload(arrivals_s[order], durations_s[order].astype(np.float32))
    return workload, order < len(demand.arrivals_s)


def _changes(held: Levels, slot_s: float) -> tuple[Change, ...]:
    """Each change of the level of provisioned concurrency."""
    levels = [0, *held.tolist()]
    return tuple(
        Change(slot * slot_s, PROVISION, 0, after)
        for slot, (before, after) in enumerate(pairwise(levels))
        if after != before
    )
