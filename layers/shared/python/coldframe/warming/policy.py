"""How many environments to hold warm in the next slot.

A level is held when what a cold start is worth, times its probability, is more than what holding costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coldframe.warming.forecast import Forecaster


@dataclass(frozen=True, slots=True)
class HoldCosts:
    """What holding one environment for a slot costs, and what one cold start is worth to its caller; USD."""

    idle_usd: float
    cold_usd: float

    @property
    def least_probability(self) -> float:
        """Of a use of a level, from which on holding it is the cheaper choice."""
        return self.idle_usd / (self.idle_usd + self.cold_usd)


def level_to_hold(probabilities: Iterable[tuple[int, float]], least_probability: float) -> int:
    """The highest level that is likely enough."""
    return max((level for level, probability in probabilities if probability > least_probability), default=0)


def held_levels(peaks: Sequence[int], costs: HoldCosts, slot_s: float = 300.0) -> list[int]:
    """The level held during each slot, decided from the peaks of the slots before it alone."""
    forecaster, levels = Forecaster(slot_s), []
    for peak in peaks:
        levels.append(level_to_hold(forecaster.probabilities(), costs.least_probability))
        forecaster.observe(peak)
    return levels
