"""Forecasts of the warmer function for each slot, learnt from the slots before it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from coldframe.warming.forecast import Forecaster
from coldframe.warming.policy import SLOT_S, HoldCosts, Touched, level_to_hold, level_to_ping


class Expectation:
    """peaks: the most environments busy at once in each slot.

    Learning takes most of the time and knows no costs, so levels for several costs share it. They are those
    of `held_levels` and `pinged_levels` of `coldframe.warming.policy`.
    """

    def __init__(self, peaks: Sequence[int]) -> None:
        self._peaks = peaks
        self._probabilities: list[list[tuple[int, float]]] = []
        forecaster = Forecaster(SLOT_S)
        for peak in peaks:
            self._probabilities.append(forecaster.probabilities())
            forecaster.observe(peak)

    def held(self, costs: HoldCosts) -> list[int]:
        """The environments held during each slot."""
        return [
            level_to_hold(probabilities, costs.least_probability) for probabilities in self._probabilities
        ]

    def pinged(self, costs: HoldCosts) -> list[int]:
        """The pings sent at once at the start of each slot."""
        touched, levels = Touched(), []
        for probabilities, peak in zip(self._probabilities, self._peaks, strict=True):
            idle_slots = [touched.idle_slots(level) for level, _ in probabilities]
            levels.append(level_to_ping(probabilities, idle_slots, costs, SLOT_S))
            touched.add(max(peak, levels[-1]))
        return levels


@lru_cache(maxsize=8)
def expectation(peaks: tuple[int, ...]) -> Expectation:
    """The same again for another memory size of which as many are busy."""
    return Expectation(peaks)
