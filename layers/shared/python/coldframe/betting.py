"""Evidence about the mean of bounded outcomes from their counts, valid at every look.

A gambler bets on each outcome, at odds that are fair or better for the bank while the mean is at most some
value. Then the capital of 1 reaches 1 / alpha with a probability of at most alpha, however often somebody
looks (Ville 1939). With one stake for all outcomes, the capital depends on their counts alone, so a table can
hold them. The gambler splits the capital over stakes from tiny to large: the discrete form of the mixture
that gives `2^n B(b + 1/2, c + 1/2) / B(1/2, 1/2)` for pairs. Source: Waudby-Smith & Ramdas 2024,
arXiv 2010.09686.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

_STAKES = tuple(0.99 * 0.78**step for step in range(38))  # shares of the largest possible stake, to 0.0001
_WEIGHTS = tuple(math.sqrt(stake) for stake in _STAKES)  # larger stakes are for differences that show early
_LOG_WEIGHTS = tuple(math.log(weight / sum(_WEIGHTS)) for weight in _WEIGHTS)
_HALVINGS = 30
_MOST_POWER = 6  # of ten, by which counts grow when more of them are forecast
_GROWTH_HALVINGS = 8

Cells: TypeAlias = Sequence[tuple[float, float]]
"""Each possible value, with the number of outcomes that have it; values without outcomes belong to it."""


class Interval(NamedTuple):
    """Ends of an interval that contains the true mean at all looks, except with probability alpha."""

    low: float
    high: float


_SHARES = Interval(0.0, 1.0)


@dataclass(frozen=True)
class Outcomes:
    """Counts of bounded outcomes. The mean lies in `mean_range`.

    games: ways to value the outcomes so that all have one mean; the capital is split between them equally.
    Each game has one set of cells for each part of the outcomes, such as a stage with its own shares.
    """

    games: tuple[tuple[Cells, ...], ...]
    mean_range: Interval = _SHARES

    @property
    def number(self) -> float:
        """Number of outcomes."""
        return sum(count for cells in self.games[0] for _, count in cells)

    def log_evidence_above(self, mean: float) -> float:
        """Natural logarithm of the capital of bets that the true mean is above `mean`."""
        return _log_sum_exp(self.log_capitals(mean))

    def log_capitals(self, mean: float) -> list[float]:
        """Natural logarithm of each bet's capital; all bets together begin with 1."""
        equal = math.log(len(self.games))
        return [capital - equal for game in self.games for capital in _log_capitals(game, mean)]

    def log_evidence_below(self, mean: float) -> float:
        """Natural logarithm of the capital of bets that the true mean is below `mean`."""
        return self.opposite().log_evidence_above(-mean)

    def interval(self, alpha: float) -> Interval:
        """The means that no bet refutes, with half of `alpha` for each side."""
        most, (least, largest) = math.log(2 / alpha), self.mean_range
        low = last_refuted(lambda mean: self.log_evidence_above(mean) >= most, least, largest)
        high = last_refuted(lambda mean: self.log_evidence_below(mean) >= most, largest, least)
        return Interval(min(low, high), max(low, high))  # rates that change with time can cross the ends

    def needed_above(self, mean: float, alpha: float) -> float | None:
        """Number of further outcomes until the mean is probably shown to be above `mean`, at today's rates.

        None where these rates do not lead there.
        """
        return self._needed(lambda outcomes: outcomes.log_evidence_above(mean), alpha)

    def needed_below(self, mean: float, alpha: float) -> float | None:
        """Number of further outcomes until the mean is probably shown to be below `mean`."""
        return self._needed(lambda outcomes: outcomes.log_evidence_below(mean), alpha)

    def _needed(self, log_evidence: Callable[[Outcomes], float], alpha: float) -> float | None:
        if not self.number:
            return None
        growth = least_growth(lambda factor: log_evidence(self._grown(factor)) >= math.log(1 / alpha))
        return None if growth is None else self.number * (growth - 1)

    def opposite(self) -> Outcomes:
        """Outcomes with opposite values: evidence that their mean is above -m is evidence below m."""
        return self._valued(lambda value, count: (-value, count))

    def _grown(self, growth: float) -> Outcomes:
        return self._valued(lambda value, count: (value, count * growth))

    def _valued(self, change: Callable[[float, float], tuple[float, float]]) -> Outcomes:
        games = tuple(tuple(tuple(change(*cell) for cell in cells) for cells in game) for game in self.games)
        return Outcomes(games, self.mean_range)


def least_growth(is_enough: Callable[[float], bool]) -> float | None:
    """The smallest factor from 1 on by which counts have to grow, to 1 %; None where no factor is enough."""
    power = next((power for power in range(_MOST_POWER + 1) if is_enough(10.0**power)), None)
    if not power:
        return None if power is None else 1.0
    return float(
        10 ** last_refuted(lambda part: not is_enough(10**part), power - 1.0, power, _GROWTH_HALVINGS)
    )


def last_refuted(
    is_refuted: Callable[[float], bool], outer: float, inner: float, halvings: int = _HALVINGS
) -> float:
    """The last refuted value on the way from `outer` to `inner`; `outer` where that is not refuted."""
    if not is_refuted(outer):
        return outer
    for _ in range(halvings):
        middle = (outer + inner) / 2
        outer, inner = (middle, inner) if is_refuted(middle) else (outer, middle)
    return outer


def _log_capitals(game: Sequence[Cells], mean: float) -> list[float]:
    """Logarithms of what a capital of 1 becomes, split over all stakes."""
    nothing = [0.0] * len(_STAKES)  # a game without parts
    gains = map(sum, zip(nothing, *(_log_gains(cells, mean) for cells in game), strict=True))
    return [weight + gain for weight, gain in zip(_LOG_WEIGHTS, gains, strict=True)]


def _log_gains(cells: Cells, mean: float) -> list[float]:
    """Logarithms of the gains by each stake: shares of the largest one that no single outcome can ruin."""
    risk = mean - min(value for value, _ in cells)
    distances = [(value - mean, count) for value, count in cells if count]
    if risk <= 0:  # no outcome lies below: a single one above the mean refutes it
        is_refuted = any(distance > 0 for distance, _ in distances)
        return [math.inf if is_refuted else 0.0] * len(_STAKES)
    factors = [(distance / risk, count) for distance, count in distances]
    return [sum(count * math.log1p(stake * factor) for factor, count in factors) for stake in _STAKES]


def _log_sum_exp(values: Sequence[float]) -> float:
    most = max(values)
    return most if math.isinf(most) else most + math.log(sum(math.exp(value - most) for value in values))
