"""The head `auto`: the estimator's guess where it is sure, else the mean of guess and partner head."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from coldframe.heads import Probabilities
from coldframe.schemas import By

AUTO = "auto"

AutoRow: TypeAlias = NDArray[np.float32]
"""float32 (k + 1,): probabilities, and behind them who gave them: 0 the estimator, 1 the ensemble."""

_GIVERS: tuple[By, By] = ("estimator", "ensemble")


@dataclass(frozen=True)
class Guess:
    """What the estimator says of a text, and whether that may be the answer."""

    probabilities: list[float]
    sure: bool


def auto_row(guess: Guess, partner: NDArray[np.float32] | None) -> AutoRow:
    """The answer for one text. partner: probabilities (k,) by the partner head, None where none is needed."""
    row = np.empty(len(guess.probabilities) + 1, dtype=np.float32)
    row[:-1] = guess.probabilities
    row[-1] = partner is not None
    if partner is not None:
        row[:-1] = (row[:-1] + partner) / 2
    return row


def split_rows(rows: NDArray[np.float32]) -> tuple[Probabilities, list[By]]:
    """Probabilities (n, k) of n rows of `auto`, and who gave each."""
    return rows[:, :-1], [_GIVERS[int(giver)] for giver in rows[:, -1]]
