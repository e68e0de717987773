"""Confusion matrix: labels in the table against answers."""

from collections.abc import Sequence

import msgspec
import numpy as np

from coldframe_training.report.figures.classes import Classes

_PAIRS = 30


class Cell(msgspec.Struct, frozen=True, array_like=True):
    """A cell of the confusion matrix that is not zero: positions of two labels, and held-out rows."""

    label: int
    said: int
    count: int


class ConfusedPair(msgspec.Struct, frozen=True):
    """Rows of one class that were taken for another. share: of the held-out rows of `label`."""

    label: str
    said: str
    count: int
    share: float


def confusion_cells(target: Classes, answers: Classes, classes: int) -> list[Cell]:
    """The cells that are not zero, row by row: a matrix of 1,000 classes is nearly empty."""
    places, counts = np.unique(target * classes + answers, return_counts=True)
    return [
        Cell(place // classes, place % classes, count)
        for place, count in zip(places.tolist(), counts.tolist(), strict=True)
    ]


def most_confused(cells: Sequence[Cell], labels: Sequence[str], count: int = _PAIRS) -> list[ConfusedPair]:
    """The pairs with the most rows, the most frequent first."""
    support = [0] * len(labels)
    for cell in cells:
        support[cell.label] += cell.count
    wrong = sorted((cell for cell in cells if cell.label != cell.said), key=lambda cell: -cell.count)
    return [
        ConfusedPair(
            labels[cell.label], labels[cell.said], cell.count, round(cell.count / support[cell.label], 6)
        )
        for cell in wrong[:count]
    ]
