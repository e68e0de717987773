"""Every policy on one function: the levels that each would have held."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from coldframe.warming.forecast import Forecaster
from coldframe.warming.policy import HoldCosts, pinged_levels
from coldframe_bench.warming import forecasters, keeping, switching
from coldframe_bench.warming.demand import Demand, Levels
from coldframe_bench.warming.rum import Ratio
from coldframe_local.planner.levers.schedules import target_tracking

OURS = "predicted (ours)"
VARIANT = "*"
"""Ends the name of what nobody has published in this form: a forecast that is rounded to the nearest, the
hazard rule, and a choice of forecasters with knowledge of the future."""

BOUND = f"best forecaster of each block, in hindsight{VARIANT}"
_ICEBREAKER = "FFT"  # which rounds to the nearest
_KEPT_S = (60, 120, 300, 600, 1200)


@dataclass(frozen=True)
class Contest:
    """One function, and what an environment of it takes."""

    demand: Demand
    memory_gb: float

    def held(self, ratio: Ratio) -> dict[str, Levels]:
        """By policy: the level held in each slot. `OURS` is the last; only `BOUND` knows the future."""
        switching_levels = switching.switched(*self._offered(ratio))
        bound = switching.switched(*self._offered(ratio), hindsight=True)
        least = ratio.costs(self.memory_gb, self.demand.slot_s).least_probability
        return {
            **self._unpriced,
            "FeMux's switching": switching_levels,
            BOUND: bound,
            f"hazard of each level{VARIANT}": self._hazards(least),
            OURS: self._ours(least),
        }

    def _offered(self, ratio: Ratio) -> tuple[Levels, list[Levels], Ratio, float, float]:
        peaks, slot_s = self.demand.peaks, self.demand.slot_s
        offered = [forecasters.rounded_up(forecast) for forecast in self._forecasts.values()]
        return peaks, offered, ratio, self.memory_gb, slot_s

    @cached_property
    def _unpriced(self) -> dict[str, Levels]:
        """Policies that know no price."""
        peaks, slot_s = self.demand.peaks, self.demand.slot_s
        slots = sorted({max(1, round(kept_s / slot_s)) for kept_s in _KEPT_S})
        policies = {f"kept {count * slot_s / 60:g} min": keeping.keep_alive(peaks, count) for count in slots}
        policies["hybrid histogram"] = keeping.hybrid_histogram(peaks)
        for name, forecast in self._forecasts.items():
            policies[f"{name}, rounded up"] = forecasters.rounded_up(forecast)
            if not np.array_equal(forecast, np.rint(forecast)):
                own = "" if name == _ICEBREAKER else VARIANT
                policies[f"{name}, rounded{own}"] = forecasters.rounded(forecast)
        policies["target tracking"] = self.tracked
        return policies

    @cached_property
    def _forecasts(self) -> dict[str, npt.NDArray[np.floating]]:
        peaks = self.demand.peaks
        return {
            "AR(10)": forecasters.autoregressive(peaks),
            _ICEBREAKER: forecasters.fourier(peaks),
            "Markov": forecasters.markov(peaks),
            "SETAR": forecasters.threshold_autoregressive(peaks),
            "exponential smoothing": forecasters.smoothed(peaks),
        }

    @cached_property
    def tracked(self) -> Levels:
        """Application Auto Scaling, from one environment to as many as were ever needed."""
        demand = self.demand
        changes = target_tracking(demand.by_minute, 1, max(1, int(demand.peaks.max(initial=0))))
        levels, starts_s = np.ones(len(demand.peaks), np.int64), np.arange(len(demand.peaks)) * demand.slot_s
        for change in changes:
            levels[starts_s >= change.at_s] = change.value
        return levels

    def _hazards(self, least: float) -> Levels:
        """P(a level is used | slots since its last use), by counts: what ours is to beat."""
        peaks = self.demand.peaks
        levels = np.zeros_like(peaks)
        for level in range(1, int(peaks.max(initial=0)) + 1):
            used_after: Counter[int] = Counter()
            seen_after: Counter[int] = Counter()
            gap = -1
            for slot, used in enumerate((peaks >= level).tolist()):
                if gap >= 0:
                    if used_after[gap] > least * (seen_after[gap] + 1):
                        levels[slot] = level
                    seen_after[gap] += 1
                    used_after[gap] += used
                gap = 0 if used else gap + (gap >= 0)
        return levels

    def predicted(self, costs: HoldCosts) -> Levels:
        """Ours, at the prices of a user."""
        return self._ours(costs.least_probability)

    def pinged(self, costs: HoldCosts) -> Levels:
        """Ours by pings, at the prices of a user."""
        return np.array(pinged_levels(self.demand.peaks.tolist(), costs, self.demand.slot_s), np.int64)

    def _ours(self, least: float) -> Levels:
        levels = np.zeros(len(self.demand.peaks), np.int64)
        for level, column in self._probabilities.items():
            levels[column > least] = level
        return levels

    @cached_property
    def _probabilities(self) -> dict[int, npt.NDArray[np.float64]]:
        """As `coldframe.warming.policy.held_levels` would see them: at each level, of each slot."""
        demand = self.demand
        forecaster = Forecaster(demand.slot_s)
        by_level: dict[int, npt.NDArray[np.float64]] = {}
        for slot, peak in enumerate(demand.peaks.tolist()):
            for level, probability in forecaster.probabilities():
                by_level.setdefault(level, np.zeros(len(demand.peaks)))[slot] = probability
            forecaster.observe(peak)
        return dict(sorted(by_level.items()))
