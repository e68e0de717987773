"""Groups of messages that fit into the time that is left."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.jobs.backoff import firmly
from coldframe.jobs.pace import Pace, work_bytes
from coldframe.jobs.ports import Unavailable

WORKS = st.lists(st.integers(1, 200_000), min_size=1, max_size=100)
SEEN = st.lists(st.tuples(st.integers(1, 200_000), st.floats(0.0, 500.0)), min_size=1, max_size=10)


def paced(seen: list[tuple[int, float]]) -> Pace:
    """A pace that has seen groups: their work, and the seconds that they took."""
    pace = Pace()
    for work, took_s in seen:
        pace.add(work, took_s)
    return pace


@settings(deadline=None)
@given(WORKS, SEEN, st.floats(0.0, 120.0))
def test_a_group_is_expected_to_end(works: list[int], seen: list[tuple[int, float]], left_s: float) -> None:
    """A group is empty only where its first message does not fit, and leaves room beyond one message."""
    pace = paced(seen)
    size = pace.group(works, left_s)
    assert (size == 0) == (not pace.fits(works[0], left_s))
    assert size <= 1 or pace.fits(sum(works[:size]), left_s / 2)


@settings(deadline=None)
@given(WORKS, SEEN, st.floats(0.0, 120.0), st.floats(0.0, 120.0))
def test_more_time_is_no_smaller_group(
    works: list[int], seen: list[tuple[int, float]], left_s: float, more_s: float
) -> None:
    """A group has as many messages with more time, or more."""
    pace = paced(seen)
    assert pace.group(works, left_s) <= pace.group(works, left_s + more_s)


def test_the_slowest_pace_counts_and_fades() -> None:
    """One slow group makes the next ones small; each quicker one lets them grow twice as large."""
    pace = paced([(1000, 0.1), (1000, 10.0)])
    sizes = []
    for _ in range(4):
        sizes.append(pace.group([1000] * 100, 120.0))
        pace.add(1000, 0.1)
    assert sizes == [4, 8, 16, 32]


def test_an_unknown_pace() -> None:
    """Before anything is seen, any message fits, and a group is one message."""
    assert Pace().fits(10**9, 0.0)
    assert Pace().group([10**9, 1], 0.0) == 1


def test_work() -> None:
    """A text has work of its own, beside its bytes in UTF-8."""
    assert work_bytes(["a", "é"]) == 2 * 16 + 1 + 2


@pytest.mark.parametrize("failures", [0, 1, 7, 8])
def test_a_firm_call(failures: int) -> None:
    """A call is repeated after growing pauses, eight times in all, and then its failure is told."""
    left, pauses = [failures], list[float]()

    def call() -> str:
        left[0] -= 1
        if left[0] >= 0:
            raise Unavailable("Throttled")
        return "done"

    if failures == 8:
        with pytest.raises(Unavailable):
            firmly(call, pauses.append, lambda: 1.0)
    else:
        assert firmly(call, pauses.append, lambda: 1.0) == "done"
    assert pauses == [0.05 * 2**number for number in range(min(failures, 7))]
