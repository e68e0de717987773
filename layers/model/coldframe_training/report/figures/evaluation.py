"""Input of a report: a model's answers for rows outside its training. It holds no texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

AUTO = "auto"
ENSEMBLE = "ensemble"

Probabilities = NDArray[np.floating[Any]]
"""Probability for each row and class, (n, k)."""

Setting = str | int | float | bool | None


class EvaluationFault(ValueError):
    """The parts of an evaluation do not fit together."""


class Answers(NamedTuple):
    """The most probable class of each row, (n,), and its probability, (n,)."""

    said: NDArray[np.int64]
    probability: NDArray[np.float64]


class Strangeness(NamedTuple):
    """How strange texts are by one measure, 0 to 1: held-out rows, (n,), and texts of other kinds, (m,).

    is_score: whether the measure is an out-of-distribution score: a share of the validation rows.
    """

    held_out: NDArray[np.floating[Any]]
    others: NDArray[np.floating[Any]]
    is_score: bool


@dataclass(frozen=True)
class Evaluation:
    """A model on the n held-out rows of a table with k labels. Raises EvaluationFault for other shapes.

    target: class of each row, (n,), a position in the labels.
    rows: number of each row in its table, (n,), each once.
    probabilities: (n, k) by the name of the head; `auto` is one of them.
    alone: whether the estimator answered `auto` alone, (n,); None without an estimator.
    uncalibrated: probabilities of `auto` as they were before calibration, (n, k), if there are any.
    baseline: probabilities of TF-IDF and logistic regression, trained on the same rows as the model, (n, k).
    trained_on: training rows of each class, (k,).
    min_probability: below it, `auto` abstains.
    strangeness: how strange the rows and texts of other kinds are, by the name of the measure.
    near_copies: rows that nearly repeat a training row; None where nobody looked.
    seed: of everything that the report draws at random.
    settings: shown in the report as they are; callers put no texts there.
    """

    name: str
    version: str
    labels: Sequence[str]
    target: NDArray[np.int64]
    rows: NDArray[np.int64]
    probabilities: Mapping[str, Probabilities]
    alone: NDArray[np.bool_] | None = None
    uncalibrated: Probabilities | None = None
    baseline: Probabilities | None = None
    trained_on: Sequence[int] | None = None
    min_probability: float | None = None
    strangeness: Mapping[str, Strangeness] = field(default_factory=dict)
    near_copies: int | None = None
    seed: int = 0
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, k = len(self.target), len(self.labels)
        if AUTO not in self.probabilities:
            raise EvaluationFault(
                f"Found heads {', '.join(self.probabilities)}; expected {AUTO!r} among them."
            )
        if not n or k < 2:
            raise EvaluationFault(f"Found {n} held-out rows and {k} labels; expected at least 1 and 2.")
        _check_classes(self.target, k)
        check_shape("rows", self.rows, (n,))
        if len(np.unique(self.rows)) < n:
            raise EvaluationFault("A row number is there twice; expected each held-out row once.")
        if self.alone is not None:
            check_shape("alone", self.alone, (n,))
        if self.trained_on is not None:
            check_shape("trained_on", np.asarray(self.trained_on), (k,))
        for name, measure in self.strangeness.items():
            _check_strangeness(name, measure, n)
        for name, probabilities in self._all_probabilities():
            check_shape(name, probabilities, (n, k))
            _check_probabilities(name, probabilities)

    def _all_probabilities(self) -> list[tuple[str, Probabilities]]:
        others = (("uncalibrated", self.uncalibrated), ("baseline", self.baseline))
        return [*self.probabilities.items(), *((name, rows) for name, rows in others if rows is not None)]

    @property
    def heads(self) -> list[str]:
        """Names of the heads, without `auto`."""
        return [name for name in self.probabilities if name != AUTO]


def answers_of(probabilities: Probabilities) -> Answers:
    """Answers that these probabilities give. Among equal ones, the first class counts."""
    answers = probabilities.argmax(axis=1).astype(np.int64)
    return Answers(
        answers, np.take_along_axis(probabilities, answers[:, None], axis=1)[:, 0].astype(np.float64)
    )


def _check_classes(target: NDArray[np.int64], classes: int) -> None:
    if target.min() < 0 or target.max() >= classes:
        range_ = f"classes {target.min()} to {target.max()}"
        raise EvaluationFault(f"target has {range_}; expected 0 to {classes - 1}, positions in the labels.")


def check_shape(name: str, array: NDArray[Any], expected: tuple[int, ...]) -> None:
    """Raises EvaluationFault when an array has another shape."""
    if array.shape != expected:
        raise EvaluationFault(f"{name} has the shape {array.shape}; expected {expected}.")


def _check_strangeness(name: str, score: Strangeness, rows: int) -> None:
    check_shape(name, score.held_out, (rows,))
    if not len(score.others):
        raise EvaluationFault(f"{name} has no texts of other kinds; expected at least 1.")
    for values in (score.held_out, score.others):
        _check_probabilities(name, values)


def _check_probabilities(name: str, probabilities: Probabilities) -> None:
    low, high = probabilities.min(), probabilities.max()  # of NaN, both are NaN, and no comparison holds
    if not (low >= 0 and high <= 1 + 1e-3):
        raise EvaluationFault(f"{name} has values from {low} to {high}; expected probabilities, 0 to 1.")
