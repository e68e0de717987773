"""Accuracy of answers whose right labels are unknown, and a bound on their risk from a few labels."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coldframe.betting import last_refuted
from coldframe.monitoring.reference import Reference
from coldframe.monitoring.sketch import UNIT, Counts

_RAKED = ("confidence", "length", "labels")
_ROUNDS = 10  # with more, weights follow the chance in few rows
_BORROWED = 20.0  # texts: a histogram of few texts is mixed with this many of the reference
_HEAVIEST = 20.0  # a row counts for at most this many rows
_NORMAL_95 = 1.96
_MOST_STAKE = 0.75  # of the capital: no single label ends the game


class Estimate(Struct, frozen=True):
    """Accuracy without labels, 0 to 1.

    cbpe: mean of the calibrated probabilities. m_cbpe: the mean, corrected by the reference; None without
    one. margin: half of a 95 % interval, as far as chance among texts and reference rows goes.
    """

    cbpe: float
    m_cbpe: float | None
    margin: float

    @property
    def best(self) -> float:
        """The corrected estimate, where there is one."""
        return self.cbpe if self.m_cbpe is None else self.m_cbpe


def estimate_accuracy(counts: Counts, reference: Reference | None) -> Estimate | None:
    """Estimate of the share of right answers; None without answers.

    CBPE is the mean of calibrated probabilities. M-CBPE calibrates anew for the texts that came: the
    reference's rows are weighted until their histograms are those of the texts, and the mean gap between
    right answers and probabilities of these rows is added.
    Source: Białek, Kuberski, Perrakis & Bifet 2024, arXiv 2401.08348. Weights by raking: Deville & Särndal
    1992.
    """
    texts = counts.texts
    if not texts:
        return None
    mean = sum(counts.label_confidence) / UNIT / texts
    variance = max(0.0, mean - sum(counts.label_squares) / UNIT / texts) / texts
    if reference is None or not reference.rows.right:
        return Estimate(mean, None, _NORMAL_95 * math.sqrt(variance))
    weights = rake(counts, reference)
    gaps = np.array(reference.rows.right) - np.array(reference.rows.probability) / UNIT
    gap = float(weights @ gaps)
    variance += float((weights**2) @ (gaps - gap) ** 2)
    return Estimate(mean, min(1.0, max(0.0, mean + gap)), _NORMAL_95 * math.sqrt(variance))


def rake(counts: Counts, reference: Reference) -> NDArray[np.float64]:
    """Weights (n,) of the reference's rows, with which their histograms are close to those of `counts`.

    Their sum is 1. Other shares of the predicted labels come from other shares of the right labels, so rows
    of one right label keep equal weights in that step: Saerens, Latinne & Decaestecker 2002. The score and
    unknown tokens are left out: they differ between a model that was trained on a row, and one that was not.
    """
    rows = {name: np.array(getattr(reference.rows, name)) for name in _RAKED}
    truth, total = np.array(reference.rows.truth), len(reference.rows.right)
    weights = np.full(total, 1 / total)
    goals = {name: _shares(getattr(counts, name), bins) for name, bins in rows.items()}
    for _ in range(_ROUNDS):
        for name, bins in rows.items():
            present = np.bincount(bins, weights, minlength=len(goals[name]))
            fitted = weights * (goals[name] / np.maximum(present, 1e-12))[bins]
            if name == "labels":
                by_truth = np.bincount(truth, fitted) / np.maximum(np.bincount(truth, weights), 1e-12)
                fitted = weights * by_truth[truth]
            weights = np.minimum(fitted / fitted.sum(), _HEAVIEST / total)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def _shares(histogram: Sequence[int], bins: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shares of a histogram, mixed with some texts of the reference."""
    usual = np.bincount(bins, minlength=len(histogram)) / len(bins)
    return (np.array(histogram) + _BORROWED * usual) / (sum(histogram) + _BORROWED)


class LabelledAnswer(NamedTuple):
    """One answer with a true label: its calibrated probability, and whether it is right."""

    probability: float
    is_right: bool


class RiskBound(Struct, frozen=True):
    """Share of wrong answers, 0 to 1: the estimate and its interval, from `labels` random labels."""

    labels: int
    risk: float
    low: float
    high: float


def bound_risk(mean: float, labels: Iterable[LabelledAnswer], alpha: float = 0.05) -> RiskBound:
    """The share of wrong answers, from all probabilities and a few true labels.

    mean: mean calibrated probability of all answers. labels: of answers that were drawn at random among
    these, each draw independent of all others. Labels of any other choice break the bound.
    alpha: probability that the interval misses the true share at any of its moments: a look after each label
    is allowed.

    The machine's estimate 1 - mean is corrected by the mean error of the machine on the labels: prediction-
    powered risk monitoring, arXiv 2602.02229. The interval of that error is by bets with a predictable stake:
    Waudby-Smith & Ramdas 2024, arXiv 2010.09686, theorem 3.
    """
    errors = [unit_error(label) for label in labels]
    bets = stakes(errors, alpha)

    def is_refuted(error: float, sign: int) -> bool:
        return most_gain(errors, bets, error, sign) >= math.log(2 / alpha)  # half of alpha for each side

    low = last_refuted(lambda error: is_refuted(error, 1), 0.0, 1.0)
    high = last_refuted(lambda error: is_refuted(error, -1), 1.0, 0.0)
    middle = sum(errors) / len(errors) if errors else 0.5
    risk, *interval = (min(1.0, max(0.0, 2 * error - mean)) for error in (middle, low, high))
    return RiskBound(len(errors), risk, min(interval), max(interval))  # labels that change cross the ends


def unit_error(label: LabelledAnswer) -> float:
    """How much worse an answer is than its probability promises: 0.5 for as good, 1 for a certain mistake."""
    return 0.5 * (float(not label.is_right) + label.probability)


def stakes(errors: Sequence[float], alpha: float) -> list[float]:
    """Stake on each error, which depends on earlier errors only: arXiv 2010.09686, equation 26."""
    bets, total, squares = [], 0.5, 0.25
    for number, error in enumerate(errors, 1):
        variance = squares / number
        bets.append(
            min(_MOST_STAKE, math.sqrt(2 * math.log(2 / alpha) / (variance * number * math.log(1 + number))))
        )
        total += error
        squares += (error - total / (number + 1)) ** 2
    return bets


def most_gain(errors: Sequence[float], bets: Sequence[float], error: float, sign: int) -> float:
    """Largest logarithm of the capital of bets that the mean is above `error` (sign 1) or below it (-1)."""
    gain = most = 0.0
    for value, stake in zip(errors, bets, strict=True):
        gain += math.log1p(sign * stake * (value - error))
        most = max(most, gain)
    return most
