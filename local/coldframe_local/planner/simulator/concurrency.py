"""How many invocations of a workload are under way at once, if each one is served when it comes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from coldframe_local.planner.simulator.simulator import Floats


def peaks(arrivals_s: Floats, durations_s: Floats, period_s: float, span_s: float) -> npt.NDArray[np.int64]:
    """The most invocations at once within each period of the span."""
    ends_s = arrivals_s + durations_s
    moments_s = np.concatenate([arrivals_s, ends_s])
    steps = np.concatenate([np.ones(len(arrivals_s), np.int64), -np.ones(len(ends_s), np.int64)])
    order = np.lexsort((steps, moments_s))  # an end makes room for an arrival of the same moment
    at_once = np.cumsum(steps[order])
    bounds = np.arange(max(1, int(np.ceil(span_s / period_s)))) * period_s
    first = np.searchsorted(moments_s[order], bounds)
    carried = np.where(first > 0, at_once[np.maximum(first - 1, 0)], 0)
    inside = np.append(at_once, 0)
    most = np.maximum.reduceat(inside, np.minimum(first, len(at_once)))
    empty = np.append(first[1:], len(at_once)) == first
    return np.where(empty, carried, np.maximum(most, carried))


def means(arrivals_s: Floats, durations_s: Floats, span_s: float) -> npt.NDArray[np.float64]:
    """The mean of each minute; a duration counts in the minute of its arrival. -1 without any arrival."""
    minutes = max(1, int(np.ceil(span_s / 60.0)))
    of = np.minimum((arrivals_s // 60.0).astype(np.int64), minutes - 1)
    busy_s = np.bincount(of, weights=durations_s, minlength=minutes)
    return np.where(np.bincount(of, minlength=minutes) > 0, busy_s / 60.0, -1.0)
