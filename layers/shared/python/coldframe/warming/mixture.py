"""The probability that a level is used in the next slot, learnt slot by slot.

Each context counts the slots that followed it. A logistic mixture, whose weights learn online, makes one
probability of the counts. Source: Mattern 2012, "Mixing strategies in data compression"; Mahoney 2005 on
PAQ's
counters.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import exp, log

from coldframe.warming.contexts import SIDES
from coldframe.warming.weights import WEIGHTS, Weights

RATE = 0.005
_PRIOR = 0.02  # small, so a context with three counts already has much weight
_FULL = 3.0  # a context with fewer counts has a proportional weight
_LEAST = 1 / 512
_KEPT, _CEILING = 0.9, 2.0  # counts against the latest outcome shrink towards this
_LARGEST = 30.0
_MATURE = (3, 12)


class Mixture:
    """Counts and weights of one level."""

    def __init__(self, weights: Weights = WEIGHTS, rate: float = RATE) -> None:
        self.weights = [list(row) for row in weights]
        self._rate = rate
        self._counts: tuple[dict[Hashable, list[float]], ...] = tuple({} for _ in range(SIDES))
        self._contexts: Sequence[Hashable] = ()
        self._inputs: list[float] = []
        self._row = self.weights[0]
        self._told = 0.5

    def probability(self, contexts: Sequence[Hashable], rates: Iterable[float], uses: int) -> float:
        """Probability of a use in the next slot. rates: shares of slots with a use. uses: uses of the level
        so far.
        """
        self._contexts = contexts
        self._inputs = [_vote(counts.get(key)) for counts, key in zip(self._counts, contexts, strict=True)]
        self._inputs += map(_log_odds, rates)
        self._inputs.append(1.0)
        self._row = self.weights[sum(uses >= bound for bound in _MATURE)]
        score = sum(weight * value for weight, value in zip(self._row, self._inputs, strict=True))
        self._told = 1.0 / (1.0 + exp(-min(max(score, -_LARGEST), _LARGEST)))
        return self._told

    def learn(self, used: bool) -> None:
        """Learns the outcome of the slot that `probability` was last called for."""
        step = self._rate * (used - self._told)
        for number, value in enumerate(self._inputs):
            self._row[number] += step * value
        for counts, key in zip(self._counts, self._contexts, strict=True):
            if key is not None:
                pair = counts.setdefault(key, [0.0, 0.0])
                pair[used] += 1.0
                if pair[not used] > _CEILING:
                    pair[not used] = pair[not used] * _KEPT + _CEILING * (1.0 - _KEPT)


def _vote(pair: list[float] | None) -> float:
    """Log odds of a use; zero for a context without counts."""
    if pair is None:
        return 0.0
    unused, used = pair
    share = (used + _PRIOR) / (unused + used + 2 * _PRIOR)
    return _log_odds(share) * min(1.0, (unused + used) / _FULL)


def _log_odds(share: float) -> float:
    share = min(max(share, _LEAST), 1.0 - _LEAST)
    return log(share / (1.0 - share))
