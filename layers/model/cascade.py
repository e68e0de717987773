"""When the estimator may answer alone: its temperature and its threshold, chosen on validation rows.

Both have a floor. On easy data every threshold costs nothing on validation, and the estimator would answer
alone whatever comes, also what is nothing like the data.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from layers.model.guesses import Guesses
from layers.model.samples import share_right

_MAX_LOSS = 0.001  # accuracy that answering alone may cost on validation
_TEMPERATURES = [round(0.6 + 0.05 * step, 2) for step in range(29)]
_THRESHOLDS = [round(0.6 + 0.01 * step, 2) for step in range(40)]


def choose_temperature(guess_at: Callable[[float], Guesses], target: NDArray[np.int64]) -> float:
    """The temperature that makes the held-out labels most likely: Guo et al. 2017.

    guess_at: the estimator's guesses of the held-out rows at a temperature.
    """

    def surprise(temperature: float) -> float:
        found = guess_at(temperature).probabilities[np.arange(len(target)), target]
        return float(-np.log(np.maximum(found, 1e-12)).mean())

    return min(tqdm(_TEMPERATURES, desc="temperature of the estimator"), key=surprise)


def cascade(guessed: Guesses, partner: NDArray[np.floating], threshold: float) -> NDArray[np.float64]:
    """What `auto` answers, for all rows at once: (n, k)."""
    sure = guessed.sure(threshold)[:, None]
    return np.where(sure, guessed.probabilities, (guessed.probabilities + partner) / 2)


def choose_threshold(guessed: Guesses, partner: NDArray[np.floating], target: NDArray[np.int64]) -> float:
    """The lowest threshold that costs next to no accuracy, and above which the estimator keeps its word."""
    both = share_right(cascade(guessed, partner, threshold=1.0), target)
    for threshold in _THRESHOLDS:
        reached = share_right(cascade(guessed, partner, threshold), target)
        if reached >= both - _MAX_LOSS and keeps_its_word(guessed, threshold, target):
            alone = f"{guessed.sure(threshold).mean():.1%} alone; both always: {both:.4f}"
            tqdm.write(f"threshold {threshold:.2f}: {reached:.4f}, {alone}")
            return threshold
    return 1.0


def keeps_its_word(guessed: Guesses, threshold: float, target: NDArray[np.int64]) -> bool:
    """Whether the estimator, where it answers alone, is right as often as its probabilities promise.

    Two standard errors below the promise are taken for chance.
    """
    sure = guessed.sure(threshold)
    if not sure.any():
        return True
    promised = guessed.probabilities[sure].max(axis=1)
    error = np.sqrt((promised * (1 - promised)).sum()) / len(promised)
    return bool(share_right(guessed.probabilities[sure], target[sure]) >= promised.mean() - 2 * error)
