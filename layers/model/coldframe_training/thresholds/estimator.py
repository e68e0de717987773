"""When the estimator may answer alone: its temperature and its threshold, chosen on validation rows.

Both have a floor. On easy data every threshold costs nothing on validation, and the estimator would answer
alone whatever comes, also what is nothing like the data.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.model.estimator import LEAST, temper
from coldframe_training.thresholds.estimator_outputs import Guesses
from coldframe_training.training_data.samples import share_right

_MAX_LOSS = 0.001  # accuracy that answering alone may cost on validation
_TEMPERATURES = [round(0.6 + 0.05 * step, 2) for step in range(29)]
_ANSWER_TEMPERATURES = [round(0.2 + 0.05 * step, 2) for step in range(37)]
_MIN_ANSWERS = 20  # with fewer, chance decides on the temperature
NEVER = 1.0
"""A threshold that no probability is above."""

_MORE_MODEST = (0.05, 0.1, 0.15)
_THRESHOLDS = [round(0.6 + 0.01 * step, 2) for step in range(40)]


class Certainty(NamedTuple):
    """Temperature that makes guesses probabilities, and threshold above which the estimator answers alone."""

    temperature: float
    threshold: float


def choose_certainty(bare: Guesses, partner: NDArray[np.floating], target: NDArray[np.int64]) -> Certainty:
    """The most likely temperature, or one a little higher if that lets the estimator answer more rows alone.

    bare: the estimator's guesses of the held-out rows at temperature 1. A temperature that suits all rows may
    promise too much of the surest ones, and then the estimator does not keep its word at any threshold.
    """
    likely = choose_temperature(bare, target)
    losses = {}
    for temperature in (likely, *(round(likely + step, 2) for step in _MORE_MODEST)):
        outputs = bare.at(temperature)
        threshold = choose_threshold(outputs, partner, target)
        losses[Certainty(temperature, threshold)] = float(outputs.sure(threshold).mean())
    return max(losses, key=losses.__getitem__)  # of equals the first


def choose_temperature(
    bare: Guesses, target: NDArray[np.int64], temperatures: Sequence[float] = _TEMPERATURES
) -> float:
    """The temperature that makes the held-out labels most likely: Guo et al. 2017.

    bare: the estimator's guesses of the held-out rows at temperature 1.
    """

    def surprise(temperature: float) -> float:
        probabilities = bare.at(temperature).probabilities[np.arange(len(target)), target]
        return float(-np.log(np.maximum(probabilities, 1e-12)).mean())

    return min(temperatures, key=surprise)


def choose_answer_temperature(answers: NDArray[np.float64], target: NDArray[np.int64]) -> float:
    """The temperature of answers (n, k) that makes the held-out labels most likely; 1 for a few answers."""
    if len(target) < _MIN_ANSWERS:
        return 1.0
    mask = np.ones(len(target), dtype=bool)
    return choose_temperature(Guesses(answers, mask, np.zeros(len(target))), target, _ANSWER_TEMPERATURES)


def temper_rows(
    answers: NDArray[np.float64], alone: NDArray[np.bool_], temperatures: tuple[float, float]
) -> NDArray[np.float64]:
    """Answers of `auto` (n, k), as they are served, to the bit. alone: by the estimator alone, (n,)."""
    by = [temperatures[0 if is_alone else 1] for is_alone in alone]
    rows = [temper(row, temperature) for row, temperature in zip(answers.tolist(), by, strict=True)]
    return np.array(rows, dtype=np.float64)


def cascade(outputs: Guesses, partner: NDArray[np.floating], threshold: float) -> NDArray[np.float64]:
    """Answers of `auto`, for all rows at once: (n, k)."""
    return _where_unsure(outputs, combine(outputs, partner), threshold)


def combine(outputs: Guesses, partner: NDArray[np.floating]) -> NDArray[np.float64]:
    """Combination of guesses and partner, (n, k): equal to `mean_with` for each row, to the bit."""
    roots = np.sqrt((outputs.probabilities + LEAST) * (partner.astype(np.float64) + LEAST))
    totals = np.array([math.fsum(row) for row in roots.tolist()])
    means: NDArray[np.float64] = roots / totals[:, None]
    return means


def _where_unsure(outputs: Guesses, both: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    return np.where(outputs.sure(threshold)[:, None], outputs.probabilities, both)


def choose_threshold(outputs: Guesses, partner: NDArray[np.floating], target: NDArray[np.int64]) -> float:
    """The lowest threshold that costs next to no accuracy, and above which the estimator keeps its word."""
    both = combine(outputs, partner)
    always = share_right(both, target)
    for threshold in _THRESHOLDS:
        if not outputs.sure(threshold).any():
            break
        reached = share_right(_where_unsure(outputs, both, threshold), target)
        if reached >= always - _MAX_LOSS and keeps_its_word(outputs, partner, threshold, target):
            return threshold
    return NEVER


def keeps_its_word(
    outputs: Guesses, partner: NDArray[np.floating], threshold: float, target: NDArray[np.int64]
) -> bool:
    """Whether the estimator, where it answers alone, is as good as its probabilities promise.

    It has to be right so often, and the partner head has to agree with it so often: labels that are easy for
    words alone say little about texts that use other words. Two standard errors below the promise are taken
    for chance.
    """
    sure = outputs.sure(threshold)
    if not sure.any():
        return True
    probabilities = outputs.probabilities[sure]
    promised = probabilities.max(axis=1)
    error = np.sqrt((promised * (1 - promised)).sum()) / len(promised)
    least = promised.mean() - 2 * error
    agreed = share_right(probabilities, partner[sure].argmax(axis=1))
    return bool(min(share_right(probabilities, target[sure]), agreed) >= least)
