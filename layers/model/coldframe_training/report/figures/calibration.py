"""Whether answers with a probability of 0.8 are right eight times of ten."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe_training.report.figures.evaluation import Answers
from coldframe_training.report.figures.intervals import Interval, rounded, wilson

_BINS = 15
_SIMULATIONS = 200


class ReliabilityBin(msgspec.Struct, frozen=True):
    """Answers whose probability is in [low, high); the last bin has its upper end, too."""

    low: float
    high: float
    rows: int
    mean_probability: float
    accuracy: Interval


class Reliability(msgspec.Struct, frozen=True):
    """A reliability curve; bins without rows are left out.

    expected_calibration_error: mean distance of probability and accuracy, weighed by rows.
    by_chance: the same of a perfectly calibrated model on as many rows, on average; nobody can expect less.
    """

    expected_calibration_error: float
    by_chance: float
    mean_probability: float
    bins: list[ReliabilityBin]


def reliability(answers: Answers, right: NDArray[np.bool_], seed: int) -> Reliability:
    """Source: Guo et al. 2017, On Calibration of Modern Neural Networks, section 2: 15 bins of one width."""
    places = np.clip((answers.probability * _BINS).astype(np.int64), 0, _BINS - 1)
    return Reliability(
        rounded(_calibration_error(places, answers.probability, right)),
        rounded(_error_by_chance(places, answers.probability, seed)),
        rounded(answers.probability.mean()),
        [
            _bin(place, answers.probability[places == place], right[places == place])
            for place in np.unique(places)
        ],
    )


def _bin(place: int, probabilities: NDArray[np.float64], right: NDArray[np.bool_]) -> ReliabilityBin:
    interval = wilson(int(right.sum()), len(right))
    assert interval is not None  # noqa: S101 - only bins with rows are asked for
    return ReliabilityBin(
        rounded(place / _BINS),
        rounded((place + 1) / _BINS),
        len(right),
        rounded(probabilities.mean()),
        interval,
    )


def _calibration_error(
    places: NDArray[np.int64], probabilities: NDArray[np.float64], right: NDArray[np.bool_]
) -> float:
    """Σ rows of the bin / rows × |mean probability − accuracy| = Σ |Σ (probability − right)| / rows."""
    gaps = np.bincount(places, weights=probabilities - right, minlength=_BINS)
    return float(np.abs(gaps).sum() / len(places))


def _error_by_chance(places: NDArray[np.int64], probabilities: NDArray[np.float64], seed: int) -> float:
    """Source: Bröcker & Smith 2007, Increasing the Reliability of Reliability Diagrams."""
    random = np.random.default_rng(seed)
    samples = (random.random(len(places)) < probabilities for _ in range(_SIMULATIONS))
    return float(np.mean([_calibration_error(places, probabilities, right) for right in samples]))
