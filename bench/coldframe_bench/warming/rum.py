"""RUM, the cost by which FeMux compares warmers: cold starts in seconds, and wasted memory-time.

Source: https://github.com/ubc-cirrus-lab/femux: a cold start lasts 0.808 s, and a second of it is worth 99.69
GB-seconds. Their variants weigh one side four times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coldframe.warming.policy import HoldCosts
from coldframe_bench.warming.demand import Levels

COLD_S = 0.808
GB_S_PER_COLD_S = 99.69


@dataclass(frozen=True)
class Ratio:
    """How a second of cold starts and wasted memory-time are weighed."""

    name: str
    cold: float = 1.0
    wasted: float = 1.0

    def costs(self, memory_gb: float, slot_s: float) -> HoldCosts:
        """In RUM instead of USD, which makes no difference to a policy."""
        return HoldCosts(self.wasted * memory_gb * slot_s / GB_S_PER_COLD_S, self.cold * COLD_S)


RATIOS = (
    Ratio("RUM"),
    Ratio("RUM, cold ×4", cold=4),
    Ratio("RUM, cold ×16", cold=16),
    Ratio("RUM, waste ×4", wasted=4),
)


@dataclass(frozen=True)
class Score:
    """Costs of one policy. needed: environments of all slots; cold: those not warm."""

    needed: int = 0
    cold: int = 0
    wasted_gb_s: float = 0.0
    rum: float = 0.0

    @property
    def cold_share(self) -> float:
        return self.cold / self.needed if self.needed else 0.0

    def __add__(self, other: Score) -> Score:
        return Score(
            self.needed + other.needed,
            self.cold + other.cold,
            self.wasted_gb_s + other.wasted_gb_s,
            self.rum + other.rum,
        )


def score(peaks: Levels, levels: Levels, ratio: Ratio, memory_gb: float, slot_s: float) -> Score:
    """Each slot for itself: what was needed and not held started cold, what was held in vain was wasted."""
    cold = int(np.maximum(0, peaks - levels).sum())
    wasted_gb_s = float(np.maximum(0, levels - peaks).sum()) * slot_s * memory_gb
    rum = ratio.cold * COLD_S * cold + ratio.wasted * wasted_gb_s / GB_S_PER_COLD_S
    return Score(int(peaks.sum()), cold, wasted_gb_s, rum)
