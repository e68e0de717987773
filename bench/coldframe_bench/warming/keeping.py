"""Warmers that keep what was used: for a fixed time, or by the histogram of idle times."""

from __future__ import annotations

import numpy as np

from coldframe_bench.warming.demand import Levels

_RANGE = 240  # slots; four hours of minutes
_HEAD, _TAIL, _MARGIN = 0.05, 0.99, 0.10
_REPRESENTATIVE = 2.0
_ARIMA_MARGIN = 0.15


def keep_alive(peaks: Levels, slots: int) -> Levels:
    """As many as were needed at once in any of the last slots."""
    levels = np.zeros_like(peaks)
    for back in range(1, min(slots, len(peaks) - 1) + 1):
        levels[back:] = np.maximum(levels[back:], peaks[:-back])
    return levels


def hybrid_histogram(peaks: Levels) -> Levels:
    """Shahrad et al., ATC 2020, "Serverless in the Wild", for each level as for an application of its own.

    Bins of one slot; warm from the 5th percentile of idle times less 10 % to the 99th plus 10 %. Where bins
    are not representative (coefficient of variation below 2) it is kept for the whole range. Where most idle
    times are out of range their mean forecasts the next, for ARIMA, within 15 %.
    """
    levels = np.zeros_like(peaks)
    for level in range(1, int(peaks.max(initial=0)) + 1):
        levels[_histogram(peaks >= level)] = level
    return levels


def _histogram(
    used: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    warm = np.zeros(len(used), np.bool_)
    bins, beyond, last = np.zeros(_RANGE), [], -1
    first, until = 0.0, 0.0
    for slot, is_used in enumerate(used.tolist()):
        if last >= 0:
            warm[slot] = first <= slot - last <= until
        if not is_used:
            continue
        if last >= 0:
            idle = slot - last
            if idle <= _RANGE:
                bins[idle - 1] += 1
            else:
                beyond.append(idle)
        first, until = _window(bins, beyond)
        last = slot
    return warm


def _window(bins: np.ndarray[tuple[int], np.dtype[np.float64]], beyond: list[int]) -> tuple[float, float]:
    """From how many slots after a use on it is warm, and until how many."""
    inside = bins.sum()
    if len(beyond) > inside:
        mean = sum(beyond) / len(beyond)
        return mean * (1 - _ARIMA_MARGIN), mean * (1 + _ARIMA_MARGIN)
    if not inside or bins.std() / bins.mean() < _REPRESENTATIVE:
        return 1, _RANGE
    shares = np.cumsum(bins) / inside
    head, tail = np.searchsorted(shares, (_HEAD, _TAIL)) + 1
    return float(np.floor(head * (1 - _MARGIN))), float(np.ceil(tail * (1 + _MARGIN)))
