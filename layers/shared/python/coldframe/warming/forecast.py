"""How likely each level is to be used in the next slot."""

from __future__ import annotations

from collections.abc import Callable

from coldframe.warming.mixture import Mixture
from coldframe.warming.past import Past
from coldframe.warming.peaks import Peaks

_PARTS = 6


class Forecaster:
    """Learns from the peaks of a function, slot by slot. One caller at a time.

    slot_s: how long a slot is. most: levels above are not looked at. new_mixture: of each level.
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
        """Of each level that was ever used: P(so many environments are busy at once in the next slot).

        From twelve on each level is a sixth above the one below: 12, 14, 16, 18, 21, …. Never rising.
        """
        told, before = [], 1.0
        for level, past, mixture in self._levels:
            before = min(
                before, mixture.probability(past.contexts(level, self._peaks), past.rates, past.uses)
            )
            told.append((level, before))
        self._asked = True
        return told

    def observe(self, peak: int) -> None:
        """The most environments busy at once in the slot that is over."""
        if not self._asked:
            self.probabilities()  # what is learnt is how wrong it was
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
