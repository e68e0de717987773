"""Effect of abstaining: the share of answers above a threshold, and their accuracy."""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe_training.report.figures.evaluation import Answers
from coldframe_training.report.figures.intervals import Interval, rounded, wilson

_CURVE_POINTS = 200
_THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_WANTED = (0.8, 0.9, 0.95, 0.99)


class CoveragePoint(msgspec.Struct, frozen=True):
    """Answers with at least this probability.

    coverage: their share of all rows. accuracy: how many of them are right; None without answers.
    """

    min_probability: float
    answered: int
    coverage: float
    accuracy: Interval | None


class WantedAccuracy(msgspec.Struct, frozen=True):
    """The most answers that are as accurate as wanted on these rows; None when no threshold gives that."""

    wanted: float
    point: CoveragePoint | None


class Coverage(msgspec.Struct, frozen=True):
    """Coverage and accuracy at thresholds.

    curve: from few answers to all. chosen: at the `min_probability` of the model, if it has one.
    """

    curve: list[CoveragePoint]
    by_threshold: list[CoveragePoint]
    wanted: list[WantedAccuracy]
    chosen: CoveragePoint | None


def coverage(answers: Answers, right: NDArray[np.bool_], min_probability: float | None) -> Coverage:
    """Coverage against accuracy. Source: El-Yaniv & Wiener 2010, foundations of selective classification."""
    ranked = _Ranked(answers, right)
    ends = ranked.ends[np.unique(np.linspace(0, len(ranked.ends) - 1, _CURVE_POINTS).astype(np.int64))]
    return Coverage(
        [ranked.first(int(end)) for end in ends],
        [ranked.at(threshold) for threshold in _THRESHOLDS],
        [WantedAccuracy(wanted, ranked.reaching(wanted)) for wanted in _WANTED],
        None if min_probability is None else ranked.at(min_probability),
    )


class _Ranked:
    """Answers from the surest to the least sure."""

    def __init__(self, answers: Answers, right: NDArray[np.bool_]) -> None:
        order = np.argsort(-answers.probability, kind="stable")
        self.probability = answers.probability[order]
        self.right = np.concatenate([[0], np.cumsum(right[order])])  # right answers among the first n
        # A threshold cannot part answers of one probability: only the last of them ends a prefix.
        self.ends = np.append(np.flatnonzero(np.diff(self.probability)) + 1, len(order))

    def first(self, answered: int) -> CoveragePoint:
        """The `answered` surest."""
        lowest = float(self.probability[answered - 1])
        return self._point(math.floor(lowest * 1e6) / 1e6, answered)  # rounded up, it would refuse the last

    def at(self, threshold: float) -> CoveragePoint:
        """Those of at least this probability."""
        return self._point(threshold, int(np.searchsorted(-self.probability, -threshold, side="right")))

    def reaching(self, accuracy: float) -> CoveragePoint | None:
        """As many as possible that are right this often."""
        enough = self.ends[self.right[self.ends] >= accuracy * self.ends]
        return self.first(int(enough[-1])) if len(enough) else None

    def _point(self, threshold: float, answered: int) -> CoveragePoint:
        share = rounded(answered / len(self.probability))
        return CoveragePoint(rounded(threshold), answered, share, wilson(int(self.right[answered]), answered))
