"""What is likely next, learnt from peaks."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.warming.forecast import Forecaster

PEAKS = st.lists(st.integers(0, 30), max_size=80)


def after(peaks: list[int], slot_s: float = 300.0) -> dict[int, float]:
    forecaster = Forecaster(slot_s)
    for peak in peaks:
        forecaster.observe(peak)
    return dict(forecaster.probabilities())


def test_nothing_is_likely_before_anything_was_seen() -> None:
    """A function without traffic has no level."""
    assert after([]) == after([0] * 50) == {}


def test_a_timer_is_learnt() -> None:
    """What comes every seven slots is likely in the seventh, and unlikely before."""
    timer = [2, 0, 0, 0, 0, 0, 0] * 40
    assert after(timer)[2] > 0.9
    assert all(after(timer + timer[:more])[2] < 0.1 for more in range(1, 7))


def test_a_level_that_is_always_used_is_likely() -> None:
    """Steady traffic needs no rhythm."""
    assert after([3] * 100)[3] > 0.95


@given(PEAKS)
@settings(max_examples=50, deadline=None)
def test_higher_levels_are_never_more_likely(peaks: list[int]) -> None:
    """P(at least k at once) falls with k, and is a probability."""
    told = list(after(peaks).values())
    assert told == sorted(told, reverse=True)
    assert all(0.0 <= probability <= 1.0 for probability in told)


@given(PEAKS)
@settings(max_examples=50, deadline=None)
def test_asking_changes_nothing(peaks: list[int]) -> None:
    """A forecaster that was asked in each slot tells what one tells that was asked at the end only."""
    asked = Forecaster(60.0)
    for peak in peaks:
        asked.probabilities()
        asked.observe(peak)
    assert dict(asked.probabilities()) == after(peaks, 60.0)


def test_levels_above_the_limit_are_not_looked_at() -> None:
    """A function with thousands of environments costs the warmer no more than its limit."""
    forecaster = Forecaster(300.0, most=20)
    forecaster.observe(5_000)
    assert [level for level, _ in forecaster.probabilities()] == [*range(1, 13), 14, 16, 18]
