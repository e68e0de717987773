"""Heap of due moments, soonest first: a list for Python's heapq, and two arrays for numba.

Under numba a list of pairs is slow: it is allocated anew each time that it shrinks. So numba gets heaps of
its own behind the same names. `due[0][0]` is the soonest moment in both, infinity when nothing is due.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from coldframe_local.planner.simulator.numba_switch import HAS_NUMBA

Due = list[tuple[float, int]]

_NEVER = float("inf")


def new_heap(capacity: int) -> Due:
    """Nothing is due. capacity: the most entries there can be at a time."""
    return [(_NEVER, -1)]


class _Arrays(NamedTuple):
    """A heap of which each entry has four below it: half as many levels as with two, and the four lie beside
    each other. moments_s: with infinity after its end. size: its one value."""

    moments_s: Any
    environments: Any
    size: Any


def _new_arrays(capacity: int) -> _Arrays:
    return _Arrays(np.full(capacity + 5, np.inf), np.zeros(capacity + 5, np.int64), np.zeros(1, np.int64))


def _push(due: Any, item: tuple[float, int]) -> None:
    moment, environment = item
    position = due.size[0]
    due.size[0] += 1
    _rise(due, position, moment, environment)


def _rise(due: Any, position: int, moment: float, environment: int) -> None:
    """Puts an entry there, or as far above as it is sooner than what is there."""
    moments_s, environments = due.moments_s, due.environments
    while position > 0:
        above = (position - 1) >> 2
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
    # The soonest of the four moves up, down to the end, without a branch that the processor guesses wrong;
    # then the last entry, which mostly belongs there, fills the hole.
    position, below = 0, 1
    while below < size:
        first_s, second_s = moments_s[below], moments_s[below + 1]
        third_s, fourth_s = moments_s[below + 2], moments_s[below + 3]
        left_s, right_s = min(first_s, second_s), min(third_s, fourth_s)
        least_s = min(left_s, right_s)
        left, right = below + int(second_s < first_s), below + 2 + int(fourth_s < third_s)
        child = right if right_s < left_s else left
        ties = int(first_s == least_s) + int(second_s == least_s)
        ties += int(third_s == least_s) + int(fourth_s == least_s)
        if ties > 1:  # the lowest number goes first
            for other in range(below, below + 4):
                if moments_s[other] == least_s and environments[other] < environments[child]:
                    child = other
        moments_s[position], environments[position] = least_s, environments[child]
        position, below = child, 4 * child + 1
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
