"""How well each class is told from the others, and all of them together."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe_training.report.figures.intervals import Interval, Z, interval, rounded, wilson

_RESAMPLES = 1000

Classes = NDArray[np.int64]
"""A class per row, (n,)."""


class ClassScore(msgspec.Struct, frozen=True):
    """A class on the held-out rows.

    support: held-out rows of the class. predicted: held-out rows that were called so.
    precision is None for a class that was never predicted; recall and f1 are None without support.
    """

    label: str
    precision: float | None
    recall: Interval | None
    f1: float | None
    support: int
    predicted: int
    trained_on: int | None


def class_scores(
    labels: Sequence[str], target: Classes, answers: Classes, trained_on: Sequence[int] | None
) -> list[ClassScore]:
    """The scores of each class, in the order of the labels."""
    support, predicted, right = (
        np.bincount(classes, minlength=len(labels))
        for classes in (target, answers, target[target == answers])
    )
    return [
        ClassScore(
            label,
            precision=rounded(right[place] / predicted[place]) if predicted[place] else None,
            recall=wilson(int(right[place]), int(support[place])),
            f1=rounded(2 * right[place] / (support[place] + predicted[place])) if support[place] else None,
            support=int(support[place]),
            predicted=int(predicted[place]),
            trained_on=None if trained_on is None else int(trained_on[place]),
        )
        for place, label in enumerate(labels)
    ]


def accuracy(target: Classes, answers: Classes) -> Interval:
    """Share of the rows that are right, with Wilson's interval."""
    interval = wilson(int((target == answers).sum()), len(target))
    assert interval is not None  # noqa: S101 - an evaluation has rows
    return interval


def macro_f1(target: Classes, answers: Classes, classes: int, seed: int) -> Interval:
    """Mean F1 of the classes that have held-out rows.

    The interval is the mean ± z standard errors. The standard error comes from a bootstrap that draws rows
    within each class, so that every class keeps its support.
    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapters 6 and 13.
    """
    support = np.bincount(target, minlength=classes)
    order = np.argsort(target, kind="stable")
    truth, ordered_answers = target[order], answers[order]
    first = (np.cumsum(support) - support)[truth]  # where the rows of a row's class begin
    random = np.random.default_rng(seed)
    resampled = []
    for _ in range(_RESAMPLES):
        rows = first + (random.random(len(truth)) * support[truth]).astype(np.int64)
        resampled.append(_mean_f1(truth, ordered_answers[rows], support))
    value, half = _mean_f1(truth, ordered_answers, support), Z * float(np.std(resampled, ddof=1))
    return interval(value, max(0.0, value - half), min(1.0, value + half))


def _mean_f1(target: Classes, answers: Classes, support: NDArray[np.int64]) -> float:
    predicted = np.bincount(answers, minlength=len(support))
    right = np.bincount(target[target == answers], minlength=len(support))
    present = support > 0
    return float((2 * right[present] / (support + predicted)[present]).mean())
