"""The admission rules: examples first, then laws that hold for any order of events."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.concurrency import (
    Arrival,
    Decision,
    Died,
    EnvironmentState,
    Event,
    Finished,
    ImpossibleEvent,
    Initialized,
    KeepAliveCheck,
    Lease,
    Limits,
    Start,
    State,
    Stop,
    Throttle,
    ThrottleReason,
    decide,
    next_expiry,
)


def play(state: State, *events: Event, now: float = 0.0) -> tuple[State, list[Decision]]:
    """The state after several events at the same time, and each decision."""
    decisions = []
    for event in events:
        state, decision = decide(state, event, now)
        decisions.append(decision)
    return state, decisions


def ready_environments(count: int, limits: Limits | None = None) -> State:
    """Environments 0 to count - 1, ready since the second of their id."""
    state, _ = play(State(limits or Limits()), *[Arrival()] * count)
    for environment_id in range(count):
        state, _ = play(
            state, Initialized(environment_id), Finished(environment_id), now=float(environment_id)
        )
    return state


def test_first_invocation_starts_an_environment() -> None:
    """Without any environment, an arrival starts number 0."""
    state, decisions = play(State(), Arrival())
    assert decisions == [Start(0)]
    assert state.state_of(0) is EnvironmentState.INIT
    assert state.in_flight == 1


def test_life_of_an_environment() -> None:
    """An environment goes from INIT over INVOKING and READY to INVOKING again, and ends STOPPED."""
    state, _ = play(State(), Arrival())
    states = [state.state_of(0)]
    for event in (Initialized(0), Finished(0), Arrival(), Died(0)):
        state, _ = play(state, event)
        states.append(state.state_of(0))
    assert states == ["INIT", "INVOKING", "READY", "INVOKING", "STOPPED"]


def test_ready_environment_is_leased_instead_of_a_new_one() -> None:
    """An arrival prefers a ready environment to starting one."""
    state, decisions = play(ready_environments(1), Arrival())
    assert decisions == [Lease(0)]
    assert state.environments == 1


def test_most_recently_used_environment_is_leased_first() -> None:
    """Of several ready environments the one that finished last is leased."""
    _, decisions = play(ready_environments(3), Arrival(), Arrival(), Arrival(), Arrival())
    assert decisions == [Lease(2), Lease(1), Lease(0), Start(3)]


def test_waiting_invocation_keeps_its_own_environment() -> None:
    """An environment in INIT belongs to the invocation that it was started for."""
    _, decisions = play(State(), Arrival(), Arrival())
    assert decisions == [Start(0), Start(1)]


def test_reserved_concurrency_throttles_with_its_reason() -> None:
    """One invocation more than the reserved concurrency is refused."""
    state, decisions = play(State(Limits(reserved_concurrency=2)), Arrival(), Arrival(), Arrival())
    assert decisions[-1] == Throttle(ThrottleReason.RESERVED_CONCURRENCY)
    assert decisions[-1] == Throttle(ThrottleReason("ReservedFunctionConcurrentInvocationLimitExceeded"))
    assert state.in_flight == 2


def test_account_concurrency_throttles_with_its_reason() -> None:
    """Without a reservation the account's limit refuses."""
    _, decisions = play(State(Limits(account_concurrency=1)), Arrival(), Arrival())
    assert decisions[-1] == Throttle(ThrottleReason("ConcurrentInvocationLimitExceeded"))


def test_reserved_concurrency_of_zero_refuses_everything() -> None:
    """A reserved concurrency of 0 is Lambda's way to switch a function off."""
    state, decisions = play(State(Limits(reserved_concurrency=0)), Arrival())
    assert isinstance(decisions[0], Throttle)
    assert state.started == 0


def test_throttle_leaves_the_state_alone() -> None:
    """A refusal changes nothing."""
    before, _ = play(State(Limits(reserved_concurrency=1)), Arrival())
    after, _ = play(before, Arrival())
    assert after == before


def test_finished_invocation_makes_room_below_the_limit() -> None:
    """The limit counts invocations in flight, not environments."""
    limits = Limits(reserved_concurrency=1)
    _, decisions = play(State(limits), Arrival(), Arrival(), Initialized(0), Finished(0), Arrival())
    assert decisions[-1] == Lease(0)


def test_dead_environment_makes_room_below_the_limit() -> None:
    """An environment that dies takes its invocation with it, whatever it was doing."""
    limits = Limits(reserved_concurrency=1)
    for ending in ((Died(0),), (Initialized(0), Died(0)), (Initialized(0), Finished(0), Died(0))):
        _, decisions = play(State(limits), Arrival(), *ending, Arrival())
        assert decisions[-1] == Start(1)


def test_idle_environments_stop_after_the_keep_alive_time() -> None:
    """Environments idle for exactly the keep-alive time or longer are stopped, longest idle first."""
    state = ready_environments(3, Limits(keep_alive_s=10.0))
    state, decisions = play(state, KeepAliveCheck(), now=11.0)
    assert decisions == [Stop((0, 1))]
    assert [state.state_of(i) for i in range(3)] == ["STOPPED", "STOPPED", "READY"]


def test_nothing_stops_before_the_keep_alive_time() -> None:
    """A check that comes early decides nothing."""
    state = ready_environments(1, Limits(keep_alive_s=10.0))
    assert play(state, KeepAliveCheck(), now=9.9) == (state, [None])


def test_busy_environments_never_expire() -> None:
    """Keep-alive is about idle environments only."""
    state, _ = play(State(), Arrival(), Arrival(), Initialized(0))
    _, decisions = play(state, KeepAliveCheck(), now=1e9)
    assert decisions == [None]


def test_next_expiry_is_that_of_the_longest_idle_environment() -> None:
    """The next expiry is the oldest ready moment plus the keep-alive time, if there is one."""
    assert next_expiry(ready_environments(3, Limits(keep_alive_s=10.0))) == 10.0
    assert next_expiry(State()) is None


def test_stopped_environment_may_die_again() -> None:
    """The end of a process that was being stopped changes nothing."""
    state, _ = play(State(), Arrival(), Died(0))
    assert play(state, Died(0)) == (state, [None])


@pytest.mark.parametrize("event", [Initialized(0), Finished(1), Finished(7), Died(7), Initialized(-1)])
def test_impossible_events_are_refused(event: Event) -> None:
    """An event that contradicts the state is a mistake of the caller, named as such."""
    state, _ = play(State(), Arrival(), Arrival(), Initialized(0))
    with pytest.raises(ImpossibleEvent):
        decide(state, event, 0.0)


def test_impossible_event_says_what_was_found_and_expected() -> None:
    """The message names the environment, its state, the state expected and the way out."""
    with pytest.raises(ImpossibleEvent, match=r"Environment 0 is READY, expected INVOKING.*Send"):
        decide(ready_environments(1), Finished(0), 0.0)


@dataclass
class Ledger:
    """What a caller of the rules knows by itself, from the decisions alone."""

    arrivals: int = 0
    completed: int = 0
    throttled: int = 0
    working_on: dict[int, int] = field(default_factory=dict)
    initializing: set[int] = field(default_factory=set)
    idle: set[int] = field(default_factory=set)

    def arrived(self, decision: Decision) -> None:
        self.arrivals += 1
        if isinstance(decision, Throttle):
            self.throttled += 1
            return
        assert isinstance(decision, (Lease, Start))
        assert decision.environment_id not in self.working_on, "two invocations in one environment"
        self.working_on[decision.environment_id] = self.arrivals
        if isinstance(decision, Start):
            assert not self.idle, "a cold start while an environment was ready"
            self.initializing.add(decision.environment_id)
        else:
            self.idle.remove(decision.environment_id)

    def possible_events(self) -> list[Event]:
        busy = set(self.working_on) - self.initializing
        return [
            Arrival(),
            KeepAliveCheck(),
            *[Initialized(i) for i in sorted(self.initializing)],
            *[Finished(i) for i in sorted(busy)],
            *[Died(i) for i in sorted(self.idle | set(self.working_on))],
        ]

    def happened(self, event: Event, decision: Decision) -> None:
        match event:
            case Arrival():
                self.arrived(decision)
            case KeepAliveCheck():
                if isinstance(decision, Stop):
                    self.idle -= set(decision.environment_ids)
            case Initialized(environment_id):
                self.initializing.remove(environment_id)
            case Finished(environment_id) | Died(environment_id):
                self.initializing.discard(environment_id)
                self.idle.discard(environment_id)
                self.completed += self.working_on.pop(environment_id, None) is not None
                if isinstance(event, Finished):
                    self.idle.add(environment_id)


limits_strategy = st.builds(
    Limits,
    keep_alive_s=st.floats(0.0, 20.0),
    reserved_concurrency=st.none() | st.integers(0, 4),
    account_concurrency=st.integers(0, 6),
)
# Which of the possible events comes next, and how much later; arrivals are made likely.
steps_strategy = st.lists(st.tuples(st.integers(-8, 30), st.floats(0.0, 5.0)), max_size=80)


@given(limits_strategy, steps_strategy)
def test_laws_hold_for_any_order_of_events(limits: Limits, steps: list[tuple[int, float]]) -> None:
    """Arrivals = completed + throttled + in flight, one invocation per environment, limits kept."""
    state, ledger, now = State(limits), Ledger(), 0.0
    bound = min(limits.account_concurrency, limits.reserved_concurrency or limits.account_concurrency)
    for choice, delay in steps:
        now += delay
        possible = ledger.possible_events()
        event = possible[max(0, choice) % len(possible)]
        state, decision = decide(state, event, now)
        ledger.happened(event, decision)
        assert ledger.arrivals == ledger.completed + ledger.throttled + state.in_flight
        assert state.in_flight == len(ledger.working_on) <= bound
        assert state.initializing == ledger.initializing
        assert {idle.environment_id for idle in state.ready} == ledger.idle
        assert state.environments <= bound


@given(limits_strategy, steps_strategy)
def test_ready_environments_are_in_order_of_use(limits: Limits, steps: list[tuple[int, float]]) -> None:
    """Idle moments never decrease along `ready`, which makes both ends the right ones to take."""
    state, ledger, now = State(limits), Ledger(), 0.0
    for choice, delay in steps:
        now += delay
        possible = ledger.possible_events()
        event = possible[max(0, choice) % len(possible)]
        state, decision = decide(state, event, now)
        ledger.happened(event, decision)
        since = [idle.since for idle in state.ready]
        assert since == sorted(since)


@given(st.integers(1, 6), st.floats(0.0, 100.0), st.floats(0.0, 200.0))
def test_check_at_the_next_expiry_stops_something(count: int, keep_alive_s: float, later: float) -> None:
    """A timer set to `next_expiry` finds work to do, and leaves nothing that was due."""
    state = ready_environments(count, Limits(keep_alive_s=keep_alive_s))
    due = next_expiry(state)
    assert due is not None
    state, decision = decide(state, KeepAliveCheck(), due + later)
    assert isinstance(decision, Stop)
    remaining = next_expiry(state)
    assert remaining is None or remaining > due + later
