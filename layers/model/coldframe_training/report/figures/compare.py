"""A model against another one, on the same rows: `--compare` and `--must-beat`."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe_training.report.figures.classes import accuracy
from coldframe_training.report.figures.evaluation import (
    AUTO,
    Evaluation,
    EvaluationFault,
    Probabilities,
    answers_of,
    check_shape,
)
from coldframe_training.report.figures.intervals import Interval
from coldframe_training.report.figures.paired import Paired, pair
from coldframe_training.report.figures.words import count

Names = NDArray[np.object_]
"""A label per row, (n,)."""


class Comparison(msgspec.Struct, frozen=True):
    """The `auto` of a model against that of another one.

    left_out: held-out rows that the other model was trained on; None where it does not say.
    """

    name: str
    version: str
    accuracy: Interval
    other_name: str
    other_version: str
    other_accuracy: Interval
    paired: Paired
    left_out: int | None = 0

    @property
    def beats(self) -> bool:
        """Whether the model is better than the other, and more so than chance explains."""
        return self.paired.beats

    @property
    def is_worse(self) -> bool:
        """Whether the model is worse than the other, and more so than chance explains."""
        return self.paired.is_worse

    @property
    def line(self) -> str:
        """One line for a terminal."""
        word = "better than" if self.beats else "worse than" if self.is_worse else "no different from"
        difference = self.paired.difference
        return (
            f"{self.name} is {word} {self.other_name}: accuracy {self.accuracy.value:.1%} against"
            f" {self.other_accuracy.value:.1%} on the same {self.paired.rows:,} rows, difference"
            f" {100 * difference.value:+.1f} points"
            f" (95% interval {100 * difference.low:+.1f} to {100 * difference.high:+.1f};"
            f" exact McNemar p {'< 0.001' if self.paired.p < 0.001 else f'= {self.paired.p:.3f}'})"
            f"{self._left_out_words}"
        )

    @property
    def _left_out_words(self) -> str:
        if self.left_out is None:
            return f"; {self.other_name} does not say which rows it was trained on: these flatter it"
        if self.left_out == 0:
            return ""
        return f"; left out: {count(self.left_out)} that {self.other_name} was trained on"


def compare(evaluation: Evaluation, other: Evaluation, left_out: int | None = 0) -> Comparison:
    """The model of `evaluation` against `other`; their labels may differ, their rows may not.

    left_out: as in the comparison.
    Raises EvaluationFault when they were not asked about the same rows, or do not agree on their labels.
    """
    numbers, order, other_order = np.intersect1d(
        evaluation.rows, other.rows, assume_unique=True, return_indices=True
    )
    if not len(numbers) == len(evaluation.rows) == len(other.rows):
        raise EvaluationFault(
            f"{evaluation.name} was asked about {len(evaluation.rows):,} rows, {other.name} about"
            f" {len(other.rows):,}, and {len(numbers):,} are the same. Expected the same rows."
        )
    truth = _names(evaluation, evaluation.target)[order]
    if differing := int((truth != _names(other, other.target)[other_order]).sum()):
        raise EvaluationFault(f"{differing:,} rows have another label for {other.name}. Expected one table.")
    return Comparison(
        evaluation.name,
        evaluation.version,
        _accuracy(evaluation),
        other.name,
        other.version,
        _accuracy(other),
        pair(_right(evaluation)[order], _right(other)[other_order]),
        left_out,
    )


def answered_by(
    name: str, version: str, labels: Sequence[str], probabilities: Probabilities, like: Evaluation
) -> Evaluation:
    """Another model, asked about the rows of `like`: what `compare` needs of it.

    labels: those of the other model, (j,). probabilities: of its `auto`, (n, j).
    Of labels that the other model does not know, it says 0: a new label is a mistake of the old model.
    """
    check_shape(f"answers of {name}", probabilities, (len(like.rows), len(labels)))
    known_labels = set(like.labels)
    union = [*like.labels, *(label for label in labels if label not in known_labels)]
    places = {label: place for place, label in enumerate(union)}
    spread = np.zeros((len(like.rows), len(union)), dtype=probabilities.dtype)
    spread[:, [places[label] for label in labels]] = probabilities
    return Evaluation(name, version, union, like.target, like.rows, {AUTO: spread})


def part_of(evaluation: Evaluation, places: Sequence[int]) -> Evaluation:
    """Some of the rows of an evaluation, by position: what `compare` needs of them."""
    indices = np.asarray(places, dtype=np.int64)
    answers = {AUTO: evaluation.probabilities[AUTO][indices]}
    target, rows = evaluation.target[indices], evaluation.rows[indices]
    return Evaluation(evaluation.name, evaluation.version, evaluation.labels, target, rows, answers)


def _names(evaluation: Evaluation, classes: NDArray[np.int64]) -> Names:
    """By name, since another model may have its labels in another order."""
    return np.asarray(evaluation.labels, dtype=object)[classes]


def _right(evaluation: Evaluation) -> NDArray[np.bool_]:
    right: NDArray[np.bool_] = answers_of(evaluation.probabilities[AUTO]).said == evaluation.target
    return right


def _accuracy(evaluation: Evaluation) -> Interval:
    return accuracy(evaluation.target, answers_of(evaluation.probabilities[AUTO]).said)
