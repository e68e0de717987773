"""When the estimator may answer alone: its temperature and its threshold, chosen on validation rows."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from layers.model.samples import share_right

_MAX_LOSS = 0.001  # accuracy that answering alone may cost on validation
_TEMPERATURES = [round(0.4 + 0.05 * step, 2) for step in range(23)]
_THRESHOLDS = [round(0.3 + 0.01 * step, 2) for step in range(70)]


def choose_temperature(guess_at: Callable[[float], NDArray[np.float64]], target: NDArray[np.int64]) -> float:
    """The temperature that makes the held-out labels most likely: Guo et al. 2017.

    guess_at: the estimator's probabilities (n, k) of the held-out rows at a temperature.
    """

    def surprise(temperature: float) -> float:
        found = guess_at(temperature)[np.arange(len(target)), target]
        return float(-np.log(found).mean())

    return min(tqdm(_TEMPERATURES, desc="temperature of the estimator"), key=surprise)


def cascade(
    guessed: NDArray[np.float64], partner: NDArray[np.floating], threshold: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """What `auto` answers, for all rows at once, and which of them the estimator answers alone."""
    sure = guessed.max(axis=1) > threshold
    return np.where(sure[:, None], guessed, (guessed + partner) / 2), sure


def choose_threshold(
    guessed: NDArray[np.float64], partner: NDArray[np.floating], target: NDArray[np.int64]
) -> float:
    """The lowest threshold at which answering alone costs next to no accuracy."""
    both = share_right(cascade(guessed, partner, threshold=1.0)[0], target)
    for threshold in _THRESHOLDS:
        answers, sure = cascade(guessed, partner, threshold)
        reached = share_right(answers, target)
        if reached >= both - _MAX_LOSS:
            alone = f"{sure.mean():.1%} alone; both always: {both:.4f}"
            tqdm.write(f"threshold {threshold:.2f}: {reached:.4f}, {alone}")
            return threshold
    return 1.0
