"""Forecasts of the warmer function for each slot, learnt from the slots before it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from coldframe.warming.forecast import Forecaster
from coldframe.warming.policy import SLOT_S, HoldCosts, Touched, level_to_hold, level_to_ping


class Expectation:
    """needed: the most environments busy at once in each slot.

    Learning takes most of the time and knows no costs, so levels for several costs share it. They are those
    of `held_levels` and `pinged_levels` of `coldframe.warming.policy`.
    """

    def __init__(self, needed: Sequence[int]) -> None:
        self._needed = needed
        self._told: list[list[tuple[int, float]]] = []
        forecaster = Forecaster(SLOT_S)
        for peak in needed:
            self._told.append(forecaster.probabilities())
            forecaster.observe(peak)

    def held(self, costs: HoldCosts) -> list[int]:
        """The environments held during each slot."""
        return [level_to_hold(told, costs.least_probability) for told in self._told]

    def pinged(self, costs: HoldCosts) -> list[int]:
        """The pings sent at once at the start of each slot."""
        touched, levels = Touched(), []
        for told, peak in zip(self._told, self._needed, strict=True):
            idle_slots = [touched.idle_slots(level) for level, _ in told]
            levels.append(level_to_ping(told, idle_slots, costs, SLOT_S))
            touched.add(max(peak, levels[-1]))
        return levels


@lru_cache(maxsize=8)
def expectation(needed: tuple[int, ...]) -> Expectation:
    """The same again for another memory size of which as many are busy."""
    return Expectation(needed)
