"""What a round decides, and which guard had the last word."""

import subprocess
import sys
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.warming.decision import Decision, Guards, decide, fixed_pings, replayed_usd
from coldframe.warming.policy import HoldCosts, pinged_levels
from tests.conftest import ROOT

PING, PROVISION = HoldCosts(7e-6, 1e-3), HoldCosts(1.7e-3, 1e-3)
DAILY = [0, 0, 0, 0, 0, 4] * 96  # every half hour
GUARDS = Guards(most=10, day_usd=1.0)


def decision(peaks: list[int], guards: Guards = GUARDS, spent_usd: float = 0.0) -> Decision:
    return decide(peaks, [0] * len(peaks), PING, PROVISION, guards, spent_usd)


def test_what_comes_every_half_hour_is_pinged_before_it_comes() -> None:
    """Four environments for the slot that a timer will need, and none for the slot after."""
    told = decision(DAILY[:-1])
    assert (told.pings, told.reason) == (4, "expected")
    after = decision(DAILY)
    assert (after.pings, after.reason) == (0, "nothing likely would be cold")


def test_without_traffic_nothing_is_done() -> None:
    """A function that nobody calls costs nothing."""
    for peaks in ([], [0] * 500):
        assert (decision(peaks).pings, decision(peaks).usd) == (0, 0.0)


def test_guards_have_the_last_word() -> None:
    """Minimum, maximum and money, each with its reason."""
    quiet = [0] * 300
    assert decision(quiet, replace(GUARDS, least=2)).reason == "the minimum is 2"
    assert decision(quiet, replace(GUARDS, least=2)).pings == 2
    assert decision([5] * 300, replace(GUARDS, least=2)).pings == 0  # traffic keeps them
    assert decision([*DAILY[:-1]], replace(GUARDS, most=3)).pings == 3
    spent = decision(DAILY[:-1], replace(GUARDS, day_usd=0.1), spent_usd=0.1 - 15e-6)
    assert (spent.pings, spent.reason) == (2, "0.1 USD of the day are spent")


def test_a_fixed_rate_that_was_cheaper_goes_on() -> None:
    """Its own replay of the last day decides: traffic that cannot be foreseen is left to the fixed rate."""
    dear = HoldCosts(1e-6, 1.0)
    burst = [0] * 287 + [6]  # never seen before
    told = decide(burst, [0] * 288, dear, PROVISION, replace(GUARDS, fixed=6))
    assert told.fixed_usd < told.predicted_usd
    assert (told.pings, told.reason) == (0, "the fixed rate of 6 was cheaper on the last day")
    again = decide([*burst, 0], [0] * 289, dear, PROVISION, replace(GUARDS, fixed=6))
    assert again.pings == 6


def test_a_guarantee_is_provisioned_while_it_is_likely() -> None:
    """Up to its number when the level is likely enough for its price, and zero otherwise."""
    cheap = HoldCosts(1e-4, 1e-3)
    busy = decide([3] * 300, [0] * 300, PING, cheap, replace(GUARDS, guaranteed=2))
    assert (busy.provisioned, busy.pings) == (2, 0)
    assert busy.usd == 2 * cheap.idle_usd
    quiet = decide([3] * 300 + [0] * 300, [0] * 600, PING, cheap, replace(GUARDS, guaranteed=2))
    assert quiet.provisioned == 0


PEAKS = st.lists(st.integers(0, 15), max_size=60)


@given(PEAKS, st.integers(0, 5), st.integers(0, 8), st.floats(0, 0.001), st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_no_guard_is_ever_passed(
    peaks: list[int], least: int, more: int, day_usd: float, guaranteed: int, fixed: int
) -> None:
    """Whatever the traffic: never more than the maximum, and never more than the day's money."""
    guards = Guards(least, least + more, day_usd, guaranteed, fixed)
    for spent_usd in (0.0, day_usd / 2, 2 * day_usd):
        told = decision(peaks, guards, spent_usd)
        assert 0 <= told.pings <= guards.most
        assert 0 <= told.provisioned <= guaranteed
        assert told.usd <= max(0.0, day_usd - spent_usd) + 1e-12
        assert told.reason


def test_the_replay_of_a_round_is_that_of_the_policy() -> None:
    """The price of the forecast on the last day is that of `pinged_levels`."""
    told = decision(DAILY)
    assert told.predicted_usd == replayed_usd(DAILY[-288:], pinged_levels(DAILY, PING)[-288:], PING, 300.0)
    assert told.fixed_usd == replayed_usd(DAILY[-288:], fixed_pings(DAILY[-288:], 0), PING, 300.0)
    assert told.predicted_usd < 0.7 * told.fixed_usd


def test_the_warmer_imports_the_standard_library_only() -> None:
    """Its zip brings nothing: neither numpy nor msgspec is loaded, and boto3 only when it is called."""
    code = (
        "import sys; before = set(sys.modules); import coldframe_functions.warmer.app; "
        "print(sorted({n.partition('.')[0] for n in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "['coldframe', 'coldframe_functions']"
