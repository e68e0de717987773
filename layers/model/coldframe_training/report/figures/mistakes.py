"""The mistakes that the model was surest of: labels that are wrong in the table stand among them."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe_training.report.figures.evaluation import Answers
from coldframe_training.report.figures.intervals import rounded

_SHOWN = 30


class Mistake(msgspec.Struct, frozen=True):
    """A row that was answered wrongly: its number in the table, never its text."""

    row: int
    label: str
    said: str
    probability: float


def surest_mistakes(
    rows: NDArray[np.int64], labels: Sequence[str], target: NDArray[np.int64], answers: Answers
) -> list[Mistake]:
    """The surest first; of equally sure ones, the earlier row."""
    wrong = np.flatnonzero(answers.said != target)
    order = np.lexsort((rows[wrong], -answers.probability[wrong]))
    return [
        Mistake(
            int(rows[place]),
            labels[target[place]],
            labels[answers.said[place]],
            rounded(answers.probability[place]),
        )
        for place in wrong[order][:_SHOWN]
    ]
