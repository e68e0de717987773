"""The lever that predicts: as many environments as the warmer function would hold, learnt as it learns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from coldframe.warming.costs import COLD_USD, ping_usd, provisioned_usd
from coldframe.warming.policy import SLOT_S, HoldCosts
from coldframe_local.planner.levers.forecast_replay import Expectation, expectation
from coldframe_local.planner.levers.schedules import slot_by_slot
from coldframe_local.planner.levers.workload import Field
from coldframe_local.planner.scenarios.candidates import Candidate
from coldframe_local.planner.scenarios.pings import MOST_PINGED
from coldframe_local.planner.scenarios.prices import RegionPrices
from coldframe_local.planner.simulator.concurrency import peaks
from coldframe_local.planner.simulator.simulator import Workload

_WORTHS_USD = (0.0001, 0.001, 0.01, 0.1)
_DAY_S = 86_400.0
_ACTION_S = 60.0  # the warmer's scheduled action comes a minute after its round
_GB = 1024


def predicted(field: Field) -> Candidate | None:
    """As many as the warmer expects of the traffic so far: by pings, or provisioned where that has a price.

    What a cold start is worth decides how many. It is the user's to say, so several worths are tried.
    """
    expected, gb = _expected(field.workload, field.trace.span_s), field.base.memory_mb / _GB
    prices = field.prices.lambda_[field.architecture]
    each_usd = _each_usd(field.base.memory_mb, field.prices, field.architecture)

    def pinged(worth_usd: float) -> Candidate:
        levels = _pinged(expected, HoldCosts(each_usd, worth_usd), MOST_PINGED)
        overrides = _predicted(worth_usd, max(levels), _day_usd(levels, each_usd))
        setting = f"up to {max(levels)} pings, {worth_usd:g} USD a cold start"
        return field.on_lambda("predicted", setting, replace(field.base, pings=levels), overrides)

    def guaranteed(worth_usd: float, slot_usd: float) -> Candidate:
        costs = HoldCosts(slot_usd, worth_usd)
        levels = tuple(min(MOST_PINGED, level) for level in expected.held(costs))
        changes = slot_by_slot(levels, SLOT_S, _ACTION_S)
        most = max(levels)
        overrides = (*_predicted(worth_usd, most, _day_usd(levels, slot_usd)), f"WarmGuaranteed={most}")
        setting = f"up to {most} provisioned, {worth_usd:g} USD a cold start"
        return field.on_lambda("predicted", setting, replace(field.base, changes=changes), overrides)

    tried = [pinged(worth_usd) for worth_usd in _WORTHS_USD]
    if prices.provisioned_gb_s_usd is not None and field.prices.has_provisioned(field.architecture):
        slot_usd = provisioned_usd(gb, prices.provisioned_gb_s_usd, SLOT_S)
        tried += [guaranteed(worth_usd, slot_usd) for worth_usd in _WORTHS_USD]
    return min(tried, key=field.goal.better)


def predicted_pings(
    workload: Workload, span_s: float, memory_mb: int, prices: RegionPrices, architecture: str, most: int
) -> tuple[int, ...]:
    """The pings of each round that the warmer would send, if a cold start is worth `COLD_USD`."""
    costs = HoldCosts(_each_usd(memory_mb, prices, architecture), COLD_USD)
    return _pinged(_expected(workload, span_s), costs, min(most, MOST_PINGED))


def _expected(workload: Workload, span_s: float) -> Expectation:
    rounds = max(1, int(span_s // SLOT_S))
    of_rounds = peaks(workload.arrivals_s, workload.durations_s, SLOT_S, span_s)[:rounds]
    return expectation(tuple(of_rounds.tolist()))


def _each_usd(memory_mb: int, prices: RegionPrices, architecture: str) -> float:
    return ping_usd(memory_mb / _GB, prices.lambda_[architecture].on_demand_gb_s_usd, prices.request_usd)


def _pinged(expected: Expectation, costs: HoldCosts, most: int) -> tuple[int, ...]:
    return tuple(min(most, level) for level in expected.pinged(costs))


def _predicted(worth_usd: float, most: int, day_usd: float) -> tuple[str, ...]:
    return (
        "ColdStartMode=OnDemand",
        "WarmEnvironments=0",
        "WarmPrediction=on",
        f"ColdStartUsd={worth_usd:g}",
        f"WarmMaximum={max(1, most)}",
        f"WarmUsdPerDay={day_usd:g}",
    )


def _day_usd(levels: Sequence[int], slot_usd: float) -> float:
    """Cost of holding on the most expensive day, and a quarter more, in whole cents."""
    of_day = int(_DAY_S // SLOT_S)
    days = [sum(levels[first : first + of_day]) for first in range(0, len(levels), of_day)]
    return max(1, math.ceil(125 * max(days) * slot_usd)) / 100
