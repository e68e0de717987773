"""Forecast of how likely each level is to be used in the next slot."""

from __future__ import annotations

from collections.abc import Callable

from coldframe.warming.contexts import Past
from coldframe.warming.mixture import Mixture
from coldframe.warming.peaks import Peaks

_PARTS = 6


class Forecaster:
    """Learns from the peaks of a function, slot by slot. Not safe for threads.

    slot_s: length of a slot. most: highest level of the forecast. new_mixture: creates a level's mixture.
    """

    def __init__(
        self, slot_s: float, most: int = 10_000, new_mixture: Callable[[], Mixture] = Mixture
    ) -> None:
        self._slot_s, self._most = slot_s, most
        self._new_mixture = new_mixture
        self._slots = 0
        self._levels: list[tuple[int, Past, Mixture]] = []
        self._peaks = Peaks()
        self._asked = False

    def probabilities(self) -> list[tuple[int, float]]:
        """Probability of use in the next slot, for each level that was ever used; it never rises with the
        level.

        A level is a number of environments busy at once. From twelve on, each level is a sixth above the
        previous
        one: 12, 14, 16, 18, 21, ….
        """
        levels, before = [], 1.0
        for level, past, mixture in self._levels:
            before = min(
                before, mixture.probability(past.contexts(level, self._peaks), past.rates, past.uses)
            )
            levels.append((level, before))
        self._asked = True
        return levels

    def observe(self, peak: int) -> None:
        """Learns from a finished slot. peak: the most environments busy at once."""
        if not self._asked:
            self.probabilities()  # the mixture learns from its error
        self._asked = False
        for level, past, mixture in self._levels:
            mixture.learn(peak >= level)
            past.add(peak >= level)
        self._peaks.add(peak)
        while (level := self._next()) <= min(peak, self._most):
            past = Past(self._slot_s, self._slots)
            past.add(True)
            self._levels.append((level, past, self._new_mixture()))
        self._slots += 1

    def _next(self) -> int:
        last = self._levels[-1][0] if self._levels else 0
        return last + max(1, last // _PARTS)
