"""Cost of a run, estimated before it starts from a sample of its batches."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from coldframe.progress import Progress
from coldframe_local.planner.scenarios.prices import RegionPrices
from coldframe_local.planner.traces.report_lines import Report

SAMPLED = 8
_Z95 = 1.96
_MB_PER_GB = 1024
# Step Functions in us-east-1: https://aws.amazon.com/step-functions/pricing/, read 2026-11-22. A child is an
# Express workflow that uses 64 MB, billed by 100 ms, and its start is taken to be a state transition of the
# machine. Duration is the price of the first 1,000 GB-hours.
_CHILD_USD = 1.00e-6
_TRANSITION_USD = 25e-6
_CHILD_GB_S_USD = 0.06 / 3600
_CHILD_GB = 64 / 1024
_CHILD_STEP_S = 0.1


@dataclass(frozen=True)
class Usage:
    """Cost factors of some batches. gb_s: billed by Lambda; child_s: billed time of their child workflows."""

    batches: int
    gb_s: float
    child_s: float

    def usd(self, prices: RegionPrices, architecture: str) -> float:
        """Lambda and Step Functions, without the free tier and S3."""
        of_lambda = self.gb_s * prices.lambda_[architecture].on_demand_gb_s_usd
        per_batch = prices.request_usd + _CHILD_USD + _TRANSITION_USD
        return of_lambda + self.batches * per_batch + self.child_s * _CHILD_GB * _CHILD_GB_S_USD


@dataclass(frozen=True)
class Estimate:
    """Estimate for all batches of a run. error: half of the 95 % interval, as a share."""

    rows: int
    usage: Usage
    error: float


def usage_of(reports: Iterable[Report]) -> Usage:
    """Cost of these invocations. A billed duration is rounded up to a millisecond."""
    reports = list(reports)
    billed_s = [math.ceil(round((report.duration_s + report.init_s) * 1e3, 3)) / 1e3 for report in reports]
    gb_s = sum(s * report.memory_mb / _MB_PER_GB for s, report in zip(billed_s, reports, strict=True))
    return Usage(len(reports), gb_s, sum(_child_s(s) for s in billed_s))


def estimate(
    batches: Iterable[dict[str, Any]],
    run: Callable[[dict[str, Any]], Report],
    environments: int,
    random: Random,
) -> Estimate:
    """Invokes a sample of the batches.

    run: invokes one and returns its report. environments: that the run starts; each has an init phase.
    """
    rows = count = 0
    sample: list[dict[str, Any]] = []
    for batch in batches:  # a uniform sample of a stream: Vitter 1985, algorithm R
        rows, count = rows + len(batch["Items"]), count + 1
        if len(sample) < SAMPLED:
            sample.append(batch)
        elif (place := random.randrange(count)) < SAMPLED:
            sample[place] = batch
    if not sample:
        return Estimate(0, Usage(0, 0.0, 0.0), 0.0)
    first = run(sample[0])  # probably cold
    others = Progress(sample[1:], desc="estimating", unit="batch", leave=False)
    reports = [run(batch) for batch in others] or [first]
    billed_s = [report.duration_s for report in reports]
    starts_s = first.init_s * min(environments, count)
    mean_s = statistics.fmean(billed_s)
    total_s = mean_s * count + starts_s
    error = (
        _Z95 * statistics.stdev(billed_s) / math.sqrt(len(billed_s)) / mean_s if len(billed_s) > 1 else 1.0
    )
    gb = reports[0].memory_mb / _MB_PER_GB
    return Estimate(rows, Usage(count, total_s * gb, count * _child_s(mean_s)), error)


def _child_s(invocation_s: float) -> float:
    return math.ceil(invocation_s / _CHILD_STEP_S) * _CHILD_STEP_S
