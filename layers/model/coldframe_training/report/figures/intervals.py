"""Figures with their 95 % confidence intervals."""

import math

import msgspec

LEVEL = 0.95
Z = 1.959964  # standard normal quantile of (1 + LEVEL) / 2
_DIGITS = 6


class Interval(msgspec.Struct, frozen=True):
    """A figure and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def rounded(value: float) -> float:
    """A figure as the report has it: six digits."""
    return round(float(value), _DIGITS)


def interval(value: float, low: float, high: float) -> Interval:
    """An interval, its figures rounded."""
    return Interval(rounded(value), rounded(low), rounded(high))


def wilson(hits: int, tries: int) -> Interval | None:
    """A share and its score interval; None without tries.

    Source: Wilson 1927, Probable inference, the law of succession, and statistical inference.
    """
    if not tries:
        return None
    share, shrink = hits / tries, 1 + Z**2 / tries
    centre = (share + Z**2 / (2 * tries)) / shrink
    half = Z * math.sqrt(share * (1 - share) / tries + Z**2 / (4 * tries**2)) / shrink
    return interval(share, min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half)))
