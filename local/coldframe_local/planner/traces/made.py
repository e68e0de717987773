"""Traces of our own making: seeded, of a rate that is constant or changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coldframe_local.planner.traces.trace import Floats, Trace, as_trace

_DAY_S = 86_400.0
_BURST_EVERY_S, _BURST_S = 600.0, 2.0
_ON_S, _OFF_S = 900.0, 2700.0


def _constant(times_s: Floats, rps: float, burst: int) -> Floats:
    return np.full(len(times_s), rps)


def _diurnal(times_s: Floats, rps: float, burst: int) -> Floats:
    """Nearly nothing at four in the morning, twice the mean at four in the afternoon."""
    return np.asarray(rps * (1.0 - 0.95 * np.cos(2 * np.pi * (times_s / _DAY_S - 4 / 24))))


def _bursts(times_s: Floats, rps: float, burst: int) -> Floats:
    """Every ten minutes `burst` further requests within two seconds."""
    return rps + np.where(times_s % _BURST_EVERY_S < _BURST_S, burst / _BURST_S, 0.0)


def _on_off(times_s: Floats, rps: float, burst: int) -> Floats:
    """A quarter of an hour at four times the mean, then three quarters of nothing."""
    return np.where(times_s % (_ON_S + _OFF_S) < _ON_S, rps * (_ON_S + _OFF_S) / _ON_S, 0.0)


SHAPES: dict[str, Callable[[Floats, float, int], Floats]] = {
    "constant": _constant,
    "diurnal": _diurnal,
    "bursts": _bursts,
    "on-off": _on_off,
}


def made(rps: float, hours: float, shape: str, seed: int, burst: int = 50) -> Trace:
    """A Poisson process whose rate has this shape. rps: requests a second in the mean, bursts apart.

    Raises TraceUnusable when no request falls into so short a time.
    """
    seconds = np.arange(0.0, hours * 3600.0)
    source = np.random.default_rng(seed)
    counts = source.poisson(SHAPES[shape](seconds, rps, burst))
    arrivals_s = np.repeat(seconds, counts) + source.random(int(counts.sum()))
    return as_trace(arrivals_s, ["function"], span_s=hours * 3600.0)
