"""The latest invocations, as the console hears of them."""

from hypothesis import given
from hypothesis import strategies as st

from coldframe.capacity.admission import Throttle, ThrottleReason
from coldframe_local.emulator.lambda_service.telemetry.latest_invocations import LatestInvocations

REFUSED = Throttle(ThrottleReason.RESERVED_CONCURRENCY)


@given(st.lists(st.integers(0, 40), max_size=20))
def test_each_is_told_once_and_in_order(rounds: list[int]) -> None:
    """Who asks for what came after the last one it knows gets everything, once, in order."""
    latest = LatestInvocations()
    told: list[int] = []
    for ended in rounds:
        for _ in range(ended):
            latest.ended("f", REFUSED)
        told += [view.number for view in latest.after(told[-1] if told else 0)]
    assert told == list(range(1, sum(rounds) + 1))


def test_no_more_than_the_latest_are_kept() -> None:
    """Memory is bounded: who is too late gets the latest ones only."""
    latest = LatestInvocations()
    for _ in range(10_000):
        latest.ended("f", REFUSED)
    told = [view.number for view in latest.after(0)]
    assert told == list(range(10_001 - len(told), 10_001))
    assert len(told) < 1000


def test_throttle_is_told_with_its_reason() -> None:
    """A refused invocation says why, in AWS's word."""
    latest = LatestInvocations()
    latest.ended("f", REFUSED)
    (view,) = latest.after(0)
    assert (view.status, view.reason) == ("throttled", "ReservedFunctionConcurrentInvocationLimitExceeded")
    assert view.environment_id is None
