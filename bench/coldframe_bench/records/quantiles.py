"""Quantiles and ratios with their 95 % confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
_RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """A value and its interval; a side is infinite where there are too few samples to bound it."""

    value: float
    low: float
    high: float

    def overlaps(self, other: "Interval") -> bool:
        """Whether both may be of one value."""
        return self.low <= other.high and other.low <= self.high

    def text(self, digits: int = 0) -> str:
        """`12 (11–14)`; an open side is `…`."""
        low, high = ("…" if math.isinf(side) else f"{side:,.{digits}f}" for side in (self.low, self.high))
        return f"{self.value:,.{digits}f} ({low}–{high})"


def quantile(values: Sequence[float], probability: float) -> Interval:
    """A quantile; its interval is made of order statistics and assumes no distribution.

    Source: Conover, Practical Nonparametric Statistics, 1999, section 3.2.
    """
    interval = stats.quantile_test(np.asarray(values), p=probability).confidence_interval(CONFIDENCE)
    low = -math.inf if math.isnan(interval.low) else float(interval.low)
    high = math.inf if math.isnan(interval.high) else float(interval.high)
    return Interval(float(np.quantile(values, probability, method="higher")), low, high)


def median(values: Sequence[float]) -> Interval:
    """The middle of the samples, with its interval."""
    interval = quantile(values, 0.5)
    return Interval(float(np.median(values)), interval.low, interval.high)


def median_ratio(values: Sequence[float], base: Sequence[float], seed: int) -> Interval:
    """median(values) / median(base), with a bootstrap interval.

    Source: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3.
    """
    random = np.random.default_rng(seed)
    above, below = (
        np.median(random.choice(np.asarray(side), (_RESAMPLES, len(side))), axis=1) for side in (values, base)
    )
    low, high = np.quantile(above / below, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Interval(float(np.median(values) / np.median(base)), float(low), float(high))
