"""The heap of arrays, which numba compiles, gives what heapq gives."""

from __future__ import annotations

import heapq

from hypothesis import given
from hypothesis import strategies as st

from coldframe_local.planner.simulator.heap import _new_arrays, _pop, _push

# Few moments, so that many tie; None takes the soonest out.
STEPS = st.lists(st.none() | st.sampled_from([0.0, 0.5, 1.0, 2.5]) | st.floats(0.0, 10.0), max_size=200)


@given(STEPS)
def test_heap_of_arrays_is_heapq(steps: list[float | None]) -> None:
    """Every entry comes out in the same order, ties by the number of the environment."""
    mine, theirs = _new_arrays(len(steps)), [(float("inf"), -1)]
    for number, moment in enumerate(steps):
        entry = (moment or 0.0, (number * 7) % 31)
        if moment is not None:
            _push(mine, entry)
            heapq.heappush(theirs, entry)
        elif len(theirs) > 1:
            assert _pop(mine) == heapq.heappop(theirs)
        assert mine.moments_s[0] == theirs[0][0]
    while len(theirs) > 1:
        assert _pop(mine) == heapq.heappop(theirs)
