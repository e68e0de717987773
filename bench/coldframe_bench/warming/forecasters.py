"""Forecasts of the next slot's need that FeMux chooses among, each from the slots before it alone.

Source: FeMux, EuroSys 2026, https://github.com/ubc-cirrus-lab/femux, and IceBreaker, ASPLOS 2022: 120 slots
of past, AR of 10 lags, 10 harmonics, rounded up. Nothing is known before the first slot: zeros stand there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from coldframe_bench.warming.demand import Floats, Levels

PAST = 120
_LAGS, _HARMONICS = 10, 10
_RIDGE = 1e-6
_REGIME = 0.1  # of the past; a smaller regime has no model of its own
_ALPHAS = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2))
_LEAST = 8e-6
_BLOCK = 1440


def rounded_up(forecast: Floats) -> Levels:
    """As FeMux does: any need at all is one environment."""
    return np.where(forecast < _LEAST, 0.0, np.ceil(forecast - 1e-9)).clip(0, 1e6).astype(np.int64)


def rounded(forecast: Floats) -> Levels:
    """As IceBreaker does."""
    return np.rint(forecast).clip(0, 1e6).astype(np.int64)


def fourier(peaks: Levels) -> Floats:
    """The trend and the ten slowest harmonics of the past, one slot further."""
    past = _pasts(peaks)  # (slots, PAST)
    times = np.arange(PAST) - (PAST - 1) / 2
    slope = past @ times / (times @ times)
    flat = past - slope[:, None] * np.arange(PAST)
    spectrum = np.fft.rfft(flat, axis=1)[:, : _HARMONICS + 1]
    # Harmonics have the past as their period, so the next slot is like the first one.
    again: Floats = (spectrum[:, 0].real + 2 * spectrum[:, 1:].real.sum(axis=1)) / PAST
    return again + slope * PAST


def autoregressive(peaks: Levels) -> Floats:
    """AR(10) with a constant, fitted to the past of each slot anew."""
    return np.concatenate(
        [
            _predict(rows, targets, np.ones(targets.shape), following)
            for rows, targets, following in _lagged(peaks)
        ]
    )


def threshold_autoregressive(peaks: Levels) -> Floats:
    """SETAR of two regimes: below and above the median of the past, each with its AR(10)."""
    return np.concatenate([_of_regime(*of_block) for of_block in _lagged(peaks)])


def _of_regime(
    rows: npt.NDArray[np.float64], targets: npt.NDArray[np.float64], following: npt.NDArray[np.float64]
) -> Floats:
    latest = rows[:, :, 1]  # the slot before each target
    median = np.median(latest, axis=1)
    above = following[:, 1] > median
    mask = (latest > median[:, None]) == above[:, None]
    small = mask.mean(axis=1) < _REGIME
    return _predict(rows, targets, np.where(small[:, None], 1.0, mask), following)


def smoothed(peaks: Levels) -> Floats:
    """Exponential smoothing, with the factor that was best so far."""
    values = peaks.astype(np.float64)
    paths, errors = [], []
    for alpha in _ALPHAS:
        level, path = 0.0, np.zeros(len(values))
        for slot, value in enumerate(values.tolist()):
            path[slot] = level
            level += alpha * (value - level)
        paths.append(path)
        squares = (values - path) ** 2
        errors.append(np.concatenate([[0.0], np.cumsum(squares)[:-1]]))
    best = np.argmin(errors, axis=0)
    best_path: Floats = np.asarray(paths)[best, np.arange(len(values))]
    return best_path


def markov(peaks: Levels) -> Floats:
    """Most frequent successor of the last two slots, in all of the past."""
    followed: defaultdict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    forecast = np.zeros(len(peaks))
    before = last = 0
    for slot, value in enumerate(peaks.tolist()):
        counts = followed[before, last]
        forecast[slot] = max(counts, key=lambda of: (counts[of], of)) if counts else last
        counts[value] += 1
        before, last = last, value
    return forecast


def _pasts(peaks: Levels) -> npt.NDArray[np.float64]:
    padded = np.concatenate([np.zeros(PAST), peaks.astype(np.float64)])
    return np.lib.stride_tricks.sliding_window_view(padded, PAST)[: len(peaks)]


def _lagged(
    peaks: Levels,
) -> Iterator[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Design of each slot: a constant and ten lags of each slot of its past, those slots, and its own lags.

    Block by block: a slot takes 10 KB.
    """
    of_all = _pasts(peaks)
    for start in range(0, len(of_all), _BLOCK):
        past = of_all[start : start + _BLOCK]
        windows = np.lib.stride_tricks.sliding_window_view(past, _LAGS + 1, axis=1)  # (slots, PAST - 10, 11)
        lags = windows[:, :, :-1][:, :, ::-1]  # latest first
        rows = np.concatenate([np.ones((*lags.shape[:2], 1)), lags], axis=2)
        own = past[:, ::-1][:, :_LAGS]
        yield rows, windows[:, :, -1], np.concatenate([np.ones((len(own), 1)), own], axis=1)


def _predict(
    rows: npt.NDArray[np.float64],
    targets: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    following: npt.NDArray[np.float64],
) -> Floats:
    """Weighted least squares of each slot's past, and its forecast within what that past has had."""
    weighted = rows * weights[:, :, None]
    normal = np.matmul(weighted.transpose(0, 2, 1), rows) + _RIDGE * np.eye(rows.shape[2])
    sides = np.matmul(weighted.transpose(0, 2, 1), targets[:, :, None])
    factors = np.linalg.solve(normal, sides)[:, :, 0]
    forecast: Floats = (factors * following).sum(axis=1)
    return forecast.clip(0.0, targets.max(axis=1))
