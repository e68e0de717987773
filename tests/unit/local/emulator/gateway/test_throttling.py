"""The token bucket of a throttled route."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coldframe_local.emulator.gateway.definitions import Throttling
from coldframe_local.emulator.gateway.throttling import TokenBucket

rates = st.floats(0.1, 1000.0)
bursts = st.integers(0, 50)
pauses = st.lists(st.floats(0.0, 5.0), max_size=200)


@given(rates, bursts, pauses)
def test_no_more_than_burst_and_rate(rate_per_s: float, burst: int, pauses_s: list[float]) -> None:
    """However requests come, no more are let through than the burst and what the rate has refilled."""
    now_s = 0.0
    bucket = TokenBucket(Throttling(rate_per_s, burst), lambda: now_s)
    taken = 0
    for pause_s in pauses_s:
        now_s += pause_s
        taken += bucket.take()
        assert taken <= burst + rate_per_s * now_s + 1e-6


@given(rates, st.integers(1, 50), st.integers(1, 100))
def test_slower_than_the_rate_is_never_refused(rate_per_s: float, burst: int, requests: int) -> None:
    """Requests that keep to the rate are all let through."""
    now_s = 0.0
    bucket = TokenBucket(Throttling(rate_per_s, burst), lambda: now_s)
    for _ in range(requests):
        assert bucket.take()
        now_s += 1.001 / rate_per_s


@given(rates, st.integers(1, 50))
def test_whole_burst_at_once(rate_per_s: float, burst: int) -> None:
    """A bucket that is full lets its burst through at one moment, and nothing more."""
    bucket = TokenBucket(Throttling(rate_per_s, burst), lambda: 0.0)
    assert [bucket.take() for _ in range(burst + 1)] == [True] * burst + [False]
