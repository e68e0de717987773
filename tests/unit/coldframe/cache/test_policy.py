"""When the shared cache is asked: breaker and expected costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.cache.policy import Breaker, BreakerState, Costs
from coldframe.timing import MovingAverage

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


class FakeClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def breaker(clock: FakeClock) -> Breaker:
    return Breaker(clock, max_failures=3, cooldown_s=1.0, max_cooldown_s=4.0)


def test_opens_after_failures_in_a_row() -> None:
    """Two failures are forgiven by a success; three in a row are not."""
    b = breaker(FakeClock())
    for failed in (True, True, False, True, True):
        b.failure() if failed else b.success()
    assert b.state is CLOSED
    b.failure()
    assert (b.state, b.allow()) == (OPEN, False)


def test_permanent_failure_opens_at_once() -> None:
    """What will fail again is not tried again."""
    b = breaker(FakeClock())
    b.failure(permanent=True)
    assert b.state is OPEN


def test_cooldown_doubles_up_to_its_bound() -> None:
    """Each failed probe doubles the wait; a successful one resets it."""
    clock = FakeClock()
    b = breaker(clock)
    b.failure(permanent=True)
    for cooldown_s in (1.0, 2.0, 4.0, 4.0):
        clock.now_s += cooldown_s - 0.01
        assert not b.allow()
        clock.now_s += 0.01
        assert b.allow()
        assert not b.allow()  # one probe at a time
        b.failure()
    clock.now_s += 4.0
    assert b.allow()
    b.success()
    assert (b.state, b.allow()) == (CLOSED, True)
    b.failure(permanent=True)
    clock.now_s += 1.0
    assert b.allow()


def test_a_lost_probe_is_given_up() -> None:
    """A probe that never reports does not keep the breaker half-open for ever."""
    clock = FakeClock()
    b = breaker(clock)
    b.failure(permanent=True)
    clock.now_s += 1.0
    assert [b.allow(), b.allow()] == [True, False]
    clock.now_s += 1.0
    assert b.allow()


steps = st.lists(st.one_of(st.sampled_from(["allow", "success", "failure", "permanent"]), st.floats(0, 5)))


@given(steps)
def test_breaker_laws(taken: list[str | float]) -> None:
    """Open refuses until its cooldown is over; half-open lets one through; success always closes."""
    clock = FakeClock()
    b = breaker(clock)
    allowed_at: float | None = None  # the probe that is out
    opened_at = 0.0
    for step in taken:
        before = b.state
        if isinstance(step, float):
            clock.now_s += step
            assert b.state is before  # time alone changes nothing
        elif step == "allow":
            allowed = b.allow()
            if before is CLOSED:
                assert allowed
            elif before is OPEN:
                assert allowed == (b.state is HALF_OPEN)
                assert not (allowed and clock.now_s - opened_at < 1.0)
            elif allowed:
                assert allowed_at is not None
                assert clock.now_s - allowed_at >= 1.0
            if allowed:
                allowed_at = clock.now_s
        elif step == "success":
            b.success()
            assert b.state is CLOSED
        else:
            b.failure(permanent=step == "permanent")
            assert b.state is OPEN or (before is CLOSED and step == "failure")
            if b.state is OPEN and before is not OPEN:
                opened_at = clock.now_s


@given(st.floats(0, 100), st.lists(st.floats(0, 100)), st.integers(0, 400))
def test_moving_average(prior: float, samples: list[float], skipped: int) -> None:
    """It stays within what it has seen, moves towards each sample, and fades back to its start."""
    average = MovingAverage(prior)
    for sample in samples:
        before = average.value
        average.add(sample)
        assert min(before, sample) - 1e-9 <= average.value <= max(before, sample) + 1e-9
    far = abs(average.value - prior)
    for _ in range(skipped):
        average.fade()
    assert abs(average.value - prior) <= far * 0.98**skipped + 1e-6


def costs(ms_per_token: float = 0.1, set_up_ms: float = 400.0) -> Costs:
    return Costs(1024, 100, MovingAverage(ms_per_token), set_up_ms)


lengths = st.lists(st.integers(0, 10_000), max_size=20)


@given(lengths, st.integers(0, 10_000))
def test_more_text_costs_more(characters: list[int], further: int) -> None:
    """Another text never makes computing cheaper; a text costs at most what is not cut off."""
    known = costs()
    one = known.compute_ms(characters)
    assert known.compute_ms([*characters, further]) > one
    assert one <= len(characters) * (1024 + 2) * 0.1 + 1e-6


@given(st.integers(1, 5000))
def test_a_lookup_costs_its_calls(keys: int) -> None:
    """100 keys are one call; a store that is not set up costs that, too."""
    known = costs(set_up_ms=300.0)
    calls = (keys + 99) // 100
    assert known.lookup_ms(keys, ready=True) == pytest.approx(10.0 * calls)
    assert known.lookup_ms(keys, ready=False) == pytest.approx(10.0 * calls + 300.0)


@given(lengths, st.integers(1, 300), st.booleans())
def test_asked_exactly_when_cheaper(characters: list[int], keys: int, ready: bool) -> None:
    """At first every lookup is expected to hit: asking is worth it when it is the quicker of the two."""
    known = costs()
    quicker = known.lookup_ms(keys, ready) < known.compute_ms(characters)
    assert known.worth_asking(characters, keys, ready) == quicker


def test_cold_environment_asks_for_large_requests_only() -> None:
    """What pays once boto3 is imported does not yet pay for importing it."""
    known = costs()
    text = [2000]
    assert known.worth_asking(text, 2, ready=True)
    assert not known.worth_asking(text, 2, ready=False)
    assert known.worth_asking(text * 50, 100, ready=False)


def test_learns_what_computing_costs() -> None:
    """A quick encoder makes lookups pointless, a slow one makes them worth it."""
    quick, slow = costs(ms_per_token=0.01), costs(ms_per_token=0.5)
    for known in (quick, slow):
        known.computed([400], 100)
    assert not quick.worth_asking([400], 2, ready=True)
    assert slow.worth_asking([400], 2, ready=True)
    slow.computed([], 0)  # a request that was all cached teaches nothing
    assert slow.compute_ms([400]) == pytest.approx(51, rel=0.05)


def test_learns_what_a_lookup_costs_and_brings() -> None:
    """A slow or useless store is no longer asked; after many skipped lookups it gets another chance."""
    for learn in ("slow", "useless"):
        known = costs()
        text = [1000]
        assert known.worth_asking(text, 2, ready=True)
        for _ in range(20):
            known.looked_up(2, 100.0) if learn == "slow" else known.hit(0.0)
        assert not known.worth_asking(text, 2, ready=True)
        skipped = 0
        while not known.worth_asking(text, 2, ready=True):
            known.skipped()
            skipped += 1
        assert 1 < skipped < 200


def test_ten_times_the_cost_is_always_asked() -> None:
    """However rarely it hits, a store is asked where it might save very much."""
    known = costs()
    for _ in range(100):
        known.hit(0.0)
    assert known.worth_asking([4096] * 10, 20, ready=True)
