"""How well a measure of strangeness tells texts of other kinds from the held-out rows."""

import math
from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from coldframe_training.report.figures.evaluation import Strangeness
from coldframe_training.report.figures.intervals import Interval, Z, interval, rounded, wilson

FALSE_ALARMS = 0.05
_BINS = 20
_HALVINGS = 30  # of an interval of width one: more than the report shows


class Detection(msgspec.Struct, frozen=True):
    """One measure of strangeness, on held-out rows and on texts of other kinds.

    is_score: whether it is an out-of-distribution score, which is a share of the validation rows.
    auroc: how often a text of another kind looks stranger than a held-out row; 0.5 is a guess.
    caught: share of the other texts that look stranger than 95 % of the held-out rows.
    held_out, others: shares of the texts in twenty bins of one width, from 0 to 1.
    """

    name: str
    is_score: bool
    auroc: Interval
    caught: Interval
    held_out: list[float]
    others: list[float]


class Detections(msgspec.Struct, frozen=True):
    """All measures. others: how many texts of other kinds there are."""

    others: int
    measures: list[Detection]


def detections(scores: Mapping[str, Strangeness]) -> Detections | None:
    """The measures by name; None without any."""
    if not scores:
        return None
    count = len(next(iter(scores.values())).others)
    return Detections(count, [_detection(name, score) for name, score in scores.items()])


def _detection(name: str, score: Strangeness) -> Detection:
    limit = np.quantile(score.held_out, 1 - FALSE_ALARMS, method="inverted_cdf")
    caught = wilson(int((score.others > limit).sum()), len(score.others))
    assert caught is not None  # noqa: S101 - an evaluation has texts of other kinds, or no measure
    return Detection(
        name, score.is_score, auroc(score), caught, _shares(score.held_out), _shares(score.others)
    )


def _shares(values: NDArray[np.floating]) -> list[float]:
    counts = np.histogram(np.clip(values, 0, 1), bins=_BINS, range=(0, 1))[0]
    return [rounded(share) for share in counts / len(values)]


def auroc(score: Strangeness) -> Interval:
    """Area under the receiver operating characteristic; of equally strange texts, half counts.

    The interval holds the areas θ that are no more than z standard errors from what was found, each with the
    standard error that it has if θ is true: it stays within 0 and 1, and has a width where nothing overlaps.
    Source: Newcombe 2006, Confidence intervals for an effect size measure based on the Mann-Whitney
    statistic, part 2, method 5.
    """
    n, m = len(score.held_out), len(score.others)
    ranks = rankdata(np.concatenate([score.held_out, score.others]))
    area = float((ranks[n:].sum() - m * (m + 1) / 2) / (n * m))

    def is_far(theta: float) -> bool:
        return abs(area - theta) > Z * _standard_error(theta, n, m)

    return interval(area, _edge(is_far, 0.0, area), _edge(is_far, 1.0, area))


def _edge(is_far: Callable[[float], bool], far: float, near: float) -> float:
    """Where what is near ends, between a value that may be far and one that is not."""
    if not is_far(far):
        return far
    for _ in range(_HALVINGS):
        middle = (far + near) / 2
        far, near = (middle, near) if is_far(middle) else (far, middle)
    return near


def _standard_error(theta: float, n: int, m: int) -> float:
    more = (n + m) / 2 - 1
    spread = 1 + more * (1 - theta) / (2 - theta) + more * theta / (1 + theta)
    return math.sqrt(theta * (1 - theta) * spread / (n * m))
