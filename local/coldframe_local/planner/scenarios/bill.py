"""Cost of a simulated run: the sums of `coldframe.capacity.prices.Bill`, over arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from coldframe.capacity.energy import Energy, energy_of
from coldframe_local.planner.scenarios.prices import MONTH_S, RegionPrices, costs
from coldframe_local.planner.simulator import kernel, provisioning
from coldframe_local.planner.simulator.simulator import Run, Setup, Workload

_MB_PER_GB = 1024
_BILLED_STEP_S = 300.0  # of provisioned concurrency


@dataclass(frozen=True)
class Usage:
    """Usage of one run that AWS charges for. GB-seconds cover `span_s` seconds. calls_usd: charges of other
    services."""

    requests: int
    on_demand_gb_s: float
    provisioned_gb_s: float
    provisioned_duration_gb_s: float
    restores_gb: float
    snapshot_gb: float
    span_s: float
    calls_usd: float = 0.0

    def month_usd(self, prices: RegionPrices, architecture: str) -> float:
        """A month like this run, with the tiers of duration; without the free tier."""
        months = self.span_s / MONTH_S
        of_lambda = prices.lambda_[architecture]
        usd = self.requests * prices.request_usd + self.calls_usd
        provisioned = "provisioned concurrency"
        usd += costs(self.provisioned_gb_s, of_lambda.provisioned_gb_s_usd, provisioned)
        usd += costs(self.provisioned_duration_gb_s, of_lambda.provisioned_duration_gb_s_usd, provisioned)
        usd += costs(self.restores_gb, prices.snapstart_restore_gb_usd, "SnapStart")
        cache_usd = costs(self.snapshot_gb * MONTH_S, prices.snapstart_cache_gb_s_usd, "SnapStart")
        return usd / months + of_lambda.on_demand_usd(self.on_demand_gb_s / months) + cache_usd

    def energy_of_a_thousand(self) -> Energy:
        """Energy of a thousand requests, cold starts included."""
        gb_s = self.on_demand_gb_s + self.provisioned_duration_gb_s
        return energy_of(gb_s / max(1, self.requests) * 1e3)

    def and_on_demand(self, requests: int, gb_s: float, calls_usd: float) -> Usage:
        """Bill plus invocations of another function, and the services that it calls."""
        return replace(
            self,
            requests=self.requests + requests,
            on_demand_gb_s=self.on_demand_gb_s + gb_s,
            calls_usd=self.calls_usd + calls_usd,
        )


def usage(run: Run, workload: Workload, setup: Setup, memory_mb: int, span_s: float) -> Usage:
    """Billed durations include an on-demand init phase, and are rounded up to a millisecond.

    A restore is charged by the size of the snapshot and not as duration. Provisioned concurrency costs from
    the moment that it is asked for.
    """
    gb = memory_mb / _MB_PER_GB
    outcomes = run.outcomes
    admitted = (outcomes & kernel.THROTTLED) == 0
    restored = (outcomes & kernel.RESTORED) != 0
    provisioned = admitted & ((outcomes & kernel.ON_PROVISIONED) != 0)
    waited_s = np.where(restored, 0.0, run.waits_s)
    # Sums of float32 are off by nanoseconds, which must not cost a millisecond.
    billed_s = np.ceil(np.round((workload.durations_s + waited_s) * 1e3, 3)) / 1e3
    init_s = float(run.provisioned_init_s.sum())
    return Usage(
        requests=int(admitted.sum()),
        on_demand_gb_s=float(billed_s[admitted & ~provisioned].sum()) * gb,
        provisioned_gb_s=_provisioned_s(setup, span_s) * gb,
        provisioned_duration_gb_s=(float(billed_s[provisioned].sum()) + init_s) * gb,
        restores_gb=int(restored.sum()) * gb,
        snapshot_gb=sum(pool.snapstart for pool in setup.pools) * gb,
        span_s=span_s,
    )


def _provisioned_s(setup: Setup, span_s: float) -> float:
    """Seconds of provisioned concurrency that are billed, of all pools.

    Each environment counts from the moment that it is asked for until it is given up, rounded up to five
    minutes. One that is kept beyond the span counts as its time passes.
    Source: https://aws.amazon.com/lambda/pricing/, "rounded up to the nearest five minutes", 2026-11-22.
    """
    return sum(_billed_s(setup, number, span_s) for number in range(len(setup.pools)))


def _billed_s(setup: Setup, number: int, span_s: float) -> float:
    """The same, of one pool. The environment that was asked for last is given up first."""
    since = [0.0] * setup.pools[number].provisioned
    total = 0.0
    for change in sorted(setup.changes, key=lambda change: change.at_s):
        if change.kind != provisioning.PROVISION or change.of != number or change.at_s >= span_s:
            continue
        while len(since) > change.value:
            total += math.ceil((change.at_s - since.pop()) / _BILLED_STEP_S) * _BILLED_STEP_S
        since += [change.at_s] * (change.value - len(since))
    return total + sum(span_s - moment for moment in since)
