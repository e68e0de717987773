"""What comes due, soonest first: a list for Python's heapq, and two arrays for numba.

Under numba a list of pairs is slow: it is allocated anew each time that it shrinks. So numba gets heaps of
its own behind the same names. `due[0][0]` is the soonest moment in both, infinity when nothing is due.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from local.planning.jit import HAS_NUMBA

Due = list[tuple[float, int]]

_NEVER = float("inf")


def new_heap(capacity: int) -> Due:
    """Nothing is due. capacity: the most entries there can be at a time."""
    return [(_NEVER, -1)]


class _Arrays(NamedTuple):
    """moments_s: a heap, with infinity after its end. size: its one value."""

    moments_s: Any
    environments: Any
    size: Any


def _new_arrays(capacity: int) -> _Arrays:
    return _Arrays(np.full(capacity + 2, np.inf), np.zeros(capacity + 2, np.int64), np.zeros(1, np.int64))


def _push(due: Any, item: tuple[float, int]) -> None:
    moment, environment = item
    position = due.size[0]
    due.size[0] += 1
    _rise(due, position, moment, environment)


def _rise(due: Any, position: int, moment: float, environment: int) -> None:
    """Puts an entry there, or as far above as it is sooner than what is there."""
    moments_s, environments = due.moments_s, due.environments
    while position > 0:
        above = (position - 1) >> 1
        if moment > moments_s[above] or (moment == moments_s[above] and environment > environments[above]):
            break
        moments_s[position], environments[position] = moments_s[above], environments[above]
        position = above
    moments_s[position], environments[position] = moment, environment


def _pop(due: Any) -> tuple[float, int]:
    moments_s, environments = due.moments_s, due.environments
    soonest = moments_s[0], environments[0]
    size = due.size[0] - 1
    due.size[0] = size
    moment, environment = moments_s[size], environments[size]
    moments_s[size] = _NEVER
    # The sooner child moves up, down to the end, without a branch that the processor would guess wrong; then
    # the last entry, which mostly belongs there, fills the hole.
    position, below = 0, 1
    while below < size:
        left_s, right_s = moments_s[below], moments_s[below + 1]
        tied = (right_s == left_s) & (environments[below + 1] < environments[below])
        below += int((right_s < left_s) | tied)
        moments_s[position], environments[position] = moments_s[below], environments[below]
        position, below = below, 2 * below + 1
    if size > 0:
        _rise(due, position, moment, environment)
    return soonest


if HAS_NUMBA:
    from numba.core import types
    from numba.extending import overload, register_jitable

    for _function in (_new_arrays, _rise, _push, _pop):
        register_jitable(_function)

    @overload(new_heap, strict=False)
    def _new_heap_of_arrays(capacity: Any) -> Any:
        return lambda capacity: _new_arrays(capacity)

    @overload(heapq.heappush, strict=False)
    def _heappush_of_arrays(heap: Any, item: Any) -> Any:
        return (lambda heap, item: _push(heap, item)) if isinstance(heap, types.NamedTuple) else None

    @overload(heapq.heappop, strict=False)
    def _heappop_of_arrays(heap: Any) -> Any:
        return (lambda heap: _pop(heap)) if isinstance(heap, types.NamedTuple) else None
