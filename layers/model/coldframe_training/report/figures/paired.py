"""Two sets of answers to the same rows: is one better, or was it chance?"""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from coldframe_training.report.figures.intervals import LEVEL, Interval, Z, interval, rounded


class Paired(msgspec.Struct, frozen=True):
    """The first against the second.

    difference: accuracy of the first minus accuracy of the second, and its 95 % interval.
    only_first, only_second: rows that only one of them has right.
    p: exact McNemar test, two-sided.
    """

    rows: int
    only_first: int
    only_second: int
    difference: Interval
    standard_error: float
    p: float

    @property
    def beats(self) -> bool:
        """Whether the first is better, and more so than chance explains."""
        return self.difference.value > 0 and self.p < 1 - LEVEL

    @property
    def is_worse(self) -> bool:
        """Whether the first is worse, and more so than chance explains."""
        return self.difference.value < 0 and self.p < 1 - LEVEL

    @property
    def is_below(self) -> bool:
        """Whether the first is worse by more than one standard error."""
        return self.difference.value < -self.standard_error


def pair(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Paired:
    """first, second: which rows each has right, (n,)."""
    rows = len(first)
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    return Paired(
        rows,
        only_first,
        only_second,
        _difference(only_first, only_second, rows),
        rounded(_standard_error(only_first, only_second, rows)),
        mcnemar(only_first, only_second),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact and two-sided: rows that both or neither have right say nothing.

    Source: McNemar 1947, Note on the sampling error of the difference between correlated proportions.
    """
    if only_first == only_second:
        return 1.0
    return float(stats.binomtest(only_first, only_first + only_second).pvalue)


def _difference(only_first: int, only_second: int, rows: int) -> Interval:
    """Adjusted Wald interval, which keeps its word with few rows, too: one row is added on each side.

    Source: Bonett & Price 2012, Journal of Educational and Behavioral Statistics 37 (4).
    """
    centre = (only_first - only_second) / (rows + 2)
    half = Z * _standard_error(only_first + 1, only_second + 1, rows + 2)
    return interval((only_first - only_second) / rows, max(-1.0, centre - half), min(1.0, centre + half))


def _standard_error(only_first: int, only_second: int, rows: int) -> float:
    return math.sqrt(only_first + only_second - (only_first - only_second) ** 2 / rows) / rows
