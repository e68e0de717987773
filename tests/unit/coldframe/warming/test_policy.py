"""How many environments are worth holding."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.warming.costs import ping_usd, provisioned_usd
from coldframe.warming.policy import (
    HoldCosts,
    Touched,
    expired_share,
    held_levels,
    level_to_hold,
    level_to_ping,
    pinged_levels,
)

PEAKS = st.lists(st.integers(0, 12), min_size=1, max_size=60)
CHEAP, DEAR = HoldCosts(1e-6, 1e-3), HoldCosts(1e-3, 1e-3)
TOLD = [(1, 0.9), (2, 0.6), (3, 0.1)]


def test_a_level_is_held_when_its_cold_start_costs_more() -> None:
    """The threshold is the idle price over the sum of both."""
    assert level_to_hold(TOLD, DEAR.least_probability) == 2
    assert level_to_hold(TOLD, CHEAP.least_probability) == 3
    assert level_to_hold([], 0.5) == 0


def test_what_was_touched_lately_needs_no_ping() -> None:
    """Lambda keeps an idle environment for five minutes at least."""
    assert level_to_ping(TOLD, [0, 0, 0], CHEAP, 300.0) == 0
    assert level_to_ping(TOLD, [0, 5, 5], CHEAP, 300.0) == 3


def test_pings_of_a_level_pay_for_those_below() -> None:
    """A ping reaches the highest environment only when the others are held busy by pings as well."""
    costs = HoldCosts(1e-3, 1e-3 / 0.95)
    assert level_to_ping([(1, 0.99)], [50], HoldCosts(0.9e-3, 1e-3), 300.0) == 1
    assert level_to_ping([(1, 0.99), (2, 0.98)], [0, 50], costs, 300.0) == 0


def test_environments_expire_after_five_to_forty_five_minutes() -> None:
    """Shares of those that are gone."""
    assert [expired_share(minutes * 60) for minutes in (0, 5, 25, 45, 600)] == [0, 0, 0.5, 1, 1]


@given(PEAKS, st.lists(st.integers(0, 12), max_size=20))
@settings(max_examples=40, deadline=None)
def test_the_future_changes_no_decision(past: list[int], future: list[int]) -> None:
    """Levels of the past are the same, whatever comes."""
    for decide in (held_levels, pinged_levels):
        for costs in (CHEAP, DEAR):
            assert decide([*past, *future], costs)[: len(past)] == decide(past, costs)


@given(PEAKS)
@settings(deadline=None)
def test_touched_knows_the_latest_use_of_each_level(peaks: list[int]) -> None:
    """As a search through all slots does."""
    touched = Touched()
    for peak in peaks:
        touched.add(peak)
    for level in range(1, 13):
        uses = [slot for slot, peak in enumerate(peaks) if peak >= level]
        expected = len(peaks) - 1 - uses[-1] if uses else len(peaks)
        assert touched.idle_slots(level) == expected


def test_provisioned_concurrency_costs_hundreds_of_pings() -> None:
    """Five minutes of 1769 MB on arm64."""
    gb = 1769 / 1024
    ratio = provisioned_usd(gb, 0.0000033334, 300.0) / ping_usd(gb, 0.0000133334, 0.2e-6, 0.1)
    assert 600 < ratio < 800
