"""The `min_probability` that keeps a wanted accuracy, chosen on validation rows.

A few rows that happen to be right prove nothing. A threshold counts only when an exact test says that a model
less accurate than wanted would hardly be right so often.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

from coldframe.progress import Progress

CONFIDENCE = 0.95
_STARTS = (0.125, 0.25, 0.5, 1.0)  # coverages
_STEPS = 100


class Threshold(NamedTuple):
    """Answers of at least `min_probability`, on the rows that it is chosen on.

    coverage: their share of all rows. accuracy: how many of them are right. at_least: the accuracy that they
    have by the confidence asked for: the lower end of Clopper and Pearson's interval.
    """

    min_probability: float
    coverage: float
    accuracy: float
    at_least: float

    def __str__(self) -> str:
        return (
            f"min_probability {self.min_probability:g} answers {self.coverage:.1%} of the validation rows,"
            f" {self.accuracy:.1%} of them right (at least {self.at_least:.1%})"
        )


class OutOfReach(Exception):
    """No threshold keeps the wanted accuracy. The message says which accuracy one does keep."""


def abstain(
    name: str, probabilities: NDArray[np.floating], target: NDArray[np.int64], accuracy: float
) -> float:
    """The `min_probability` of the head `name`; says what it does on the validation rows.

    probabilities: of the validation rows, (n, k). Raises OutOfReach.
    """
    try:
        threshold = choose_min_probability(
            probabilities.max(axis=1), probabilities.argmax(axis=1) == target, accuracy
        )
    except OutOfReach as exc:
        raise OutOfReach(f"{name}: {exc}") from exc
    Progress.write(f"{name}: {threshold}")
    return threshold.min_probability


def choose_min_probability(
    probability: NDArray[np.floating],
    right: NDArray[np.bool_],
    accuracy: float,
    confidence: float = CONFIDENCE,
) -> Threshold:
    """The lowest threshold whose answers are right at least as often as wanted.

    probability, right: of the answer to each validation row, (n,), at least one. The model must not have
    been trained on these rows. wanted: 0 to 1. At most 1 - `confidence` of all choices break their promise
    on new rows of the same kind. Raises OutOfReach when nothing can be promised.

    Thresholds are tested from few answers to many, and the first failure ends the walk: such a walk needs no
    correction for its many tests. A walk that starts at few answers often ends by bad luck. Therefore four
    walks start at four coverages, each with a quarter of the risk, and the one that comes farthest counts.
    Source: fixed sequence testing with several starts, Angelopoulos et al. 2021, Learn then Test, section 2;
    Clopper & Pearson 1934 for the test and its interval.
    """
    counts = _Counts(probability, right, (1 - confidence) / len(_STARTS))
    starts = [counts.first_answering(coverage) for coverage in _STARTS]
    passes = counts.passes(accuracy)
    reached = [_walk(passes, start) for start in starts if passes[start]]
    if not reached:
        best = max(map(counts.threshold, starts), key=lambda threshold: threshold.at_least)
        raise OutOfReach(_out_of_reach(accuracy, confidence, len(right), best))
    return counts.threshold(max(reached))


def _walk(passes: NDArray[np.bool_], start: int) -> int:
    """The last threshold before one that does not pass; that at `start` passes."""
    failures = np.flatnonzero(~passes[start:])
    return start + int(failures[0]) - 1 if len(failures) else len(passes) - 1


def _out_of_reach(accuracy: float, confidence: float, rows: int, best: Threshold) -> str:
    return (
        f"No min_probability promises an accuracy of {accuracy:.1%} with {confidence:.0%} confidence on"
        f" {rows:,} validation rows. The best that can be promised: {best}. Want less, or train on more rows."
    )


class _Counts:
    """Answers and right ones at a hundred thresholds, from few answers to all of them."""

    def __init__(self, probability: NDArray[np.floating], right: NDArray[np.bool_], risk: float) -> None:
        rows = self._rows = len(right)
        self._risk = risk
        ranked = np.sort(probability)[::-1].astype(np.float64)
        last = np.ceil(np.arange(1, _STEPS + 1) / _STEPS * rows).astype(np.int64) - 1
        thresholds = np.floor(ranked[last] * 1e4) / 1e4  # rounded down, so that its own row is answered
        thresholds[ranked[last] == ranked[-1]] = 0.0  # everything is answered
        self._thresholds = np.unique(thresholds)[::-1]
        kept = probability[None, :] >= self._thresholds[:, None]  # (thresholds, n)
        self._answered, self._right = kept.sum(axis=1), (kept & right).sum(axis=1)

    def first_answering(self, coverage: float) -> int:
        """The highest threshold that answers this share of the rows."""
        return int(np.argmax(self._answered >= coverage * self._rows))

    def passes(self, accuracy: float) -> NDArray[np.bool_]:
        """Mark each threshold at which a model below the accuracy would hardly do so well."""
        chance: NDArray[np.float64] = binom.sf(self._right - 1, self._answered, accuracy)
        return chance <= self._risk

    def threshold(self, place: int) -> Threshold:
        """One of the thresholds, with its figures."""
        answered, right = int(self._answered[place]), int(self._right[place])
        least = float(beta.ppf(self._risk, right, answered - right + 1)) if right else 0.0
        return Threshold(float(self._thresholds[place]), answered / self._rows, right / answered, least)
