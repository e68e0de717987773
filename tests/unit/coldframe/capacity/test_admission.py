"""The admission rules: examples first, then laws that hold for any order of events."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coldframe.capacity.admission import (
    Adjust,
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
    Recycle,
    SetLimits,
    SetProvisioned,
    SetSnapStart,
    Start,
    State,
    Throttle,
    ThrottleReason,
    claimed,
    decide,
    next_expiry,
    requested,
)
from coldframe.capacity.switches import Switches


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
    assert len(state.environments) == 1


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
    assert decisions == [Adjust(stop=(0, 1))]
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


def provisioned_environments(count: int, limits: Limits | None = None, version: str = "1") -> State:
    """Provisioned environments 0 to count - 1 of a version, all ready."""
    state, decisions = play(State(limits or Limits()), SetProvisioned(version, count))
    assert decisions == [Adjust(start=tuple(range(count)))]
    return play(state, *[Initialized(i) for i in range(count)])[0]


def test_provisioned_concurrency_starts_environments_ahead_of_traffic() -> None:
    """Setting it starts as many environments, which are ready without any invocation."""
    state = provisioned_environments(2)
    assert [state.state_of(i) for i in range(2)] == ["READY", "READY"]
    assert (state.in_flight, state.provisioned["1"].allocated) == (0, 2)


def test_provisioned_environments_are_preferred_and_then_spilled_over() -> None:
    """Provisioned environments first; when all are busy, on-demand ones, counted as spillover."""
    state, decisions = play(provisioned_environments(1), Arrival("1"), Arrival("1"))
    assert decisions == [Lease(0, provisioned=True), Start(1, spillover=True)]
    state, decisions = play(state, Initialized(1), Finished(1), Arrival("1"), Finished(0), Arrival("1"))
    assert [decisions[2], decisions[4]] == [Lease(1, spillover=True), Lease(0, provisioned=True)]


def test_arrival_before_provisioned_environments_are_up_is_no_spillover() -> None:
    """While they are still loading, an invocation starts cold on demand: none of them is busy."""
    _, decisions = play(State(), SetProvisioned("1", 1), Arrival("1"))
    assert decisions[1] == Start(1, spillover=False)


def test_environments_serve_their_own_version_only() -> None:
    """Another version finds neither the provisioned nor the idle environments of this one."""
    state, decisions = play(provisioned_environments(1), Arrival("2"), Initialized(1), Finished(1))
    assert decisions[0] == Start(1)
    _, decisions = play(state, Arrival("3"), Arrival("2"))
    assert decisions == [Start(2), Lease(1)]


def test_provisioned_environments_never_expire() -> None:
    """Keep-alive is about on-demand environments only."""
    state = provisioned_environments(2)
    assert next_expiry(state) is None
    assert play(state, KeepAliveCheck(), now=1e9) == (state, [None])


@pytest.mark.parametrize("busy", [False, True])
def test_dead_provisioned_environment_is_replaced(busy: bool) -> None:
    """Idle or busy, its place is filled by a new one."""
    state, _ = play(provisioned_environments(1), *([Arrival("1")] if busy else []))
    state, decisions = play(state, Died(0))
    assert decisions == [Adjust(start=(1,))]
    assert (state.in_flight, state.state_of(1)) == (0, "INIT")


def test_provisioned_environments_that_never_come_up_are_given_up() -> None:
    """After three failed init phases in a row nothing is started, until it is asked for again."""
    state, decisions = play(State(), SetProvisioned("1", 1), Died(0), Died(1), Died(2))
    assert decisions[1:] == [Adjust(start=(1,)), Adjust(start=(2,)), None]
    assert state.provisioned["1"].failed
    _, decisions = play(state, SetProvisioned("1", 1))
    assert decisions == [Adjust(start=(3,))]


def test_success_forgets_failed_init_phases() -> None:
    """Only failures in a row count."""
    events = (SetProvisioned("1", 1), Died(0), Died(1), Initialized(2), Died(2), Died(3), Died(4))
    _, decisions = play(State(), *events)
    assert decisions[-1] == Adjust(start=(5,))


def test_on_demand_success_tries_provisioned_environments_once_more() -> None:
    """A version that serves on demand may well come up ahead of traffic, too."""
    given_up = (SetProvisioned("1", 1), Died(0), Died(1), Died(2), Arrival("1"), Initialized(3))
    _, decisions = play(State(), *given_up, Finished(3), Died(4), Arrival("1"))
    assert decisions[-3:] == [Adjust(start=(4,)), None, Lease(3)]


def test_lower_target_stops_idle_environments_first_and_busy_ones_when_they_finish() -> None:
    """Nothing that works is interrupted: the one that was busy stops with its invocation."""
    state, _ = play(provisioned_environments(3), Arrival("1"))
    state, decisions = play(state, SetProvisioned("1", 0), Finished(2))
    assert decisions == [Adjust(stop=(0, 1)), Adjust(stop=(2,))]
    assert state.provisioned == {}


def test_loading_environments_are_stopped_after_idle_ones() -> None:
    """Of those that are not needed any more, one that is still loading is the last to go."""
    state, _ = play(State(), SetProvisioned("1", 2), Initialized(0))
    _, decisions = play(state, SetProvisioned("1", 1), SetProvisioned("1", 0))
    assert decisions == [Adjust(stop=(0,)), Adjust(stop=(1,))]


def test_provisioned_concurrency_is_set_aside_from_the_reserved_one() -> None:
    """With 2 of 3 provisioned for version 1, another version has one place."""
    state = provisioned_environments(2, Limits(reserved_concurrency=3))
    state, decisions = play(
        state, Arrival("$LATEST"), Arrival("$LATEST"), Arrival("1"), Arrival("1"), Arrival("1")
    )
    refused = Throttle(ThrottleReason.RESERVED_CONCURRENCY)
    leased = [Lease(1, provisioned=True), Lease(0, provisioned=True)]
    assert decisions == [Start(2), refused, *leased, refused]
    assert state.in_flight == 3


def test_others_of_the_account_take_from_the_unreserved_concurrency() -> None:
    """What other functions hold is missing here, unless this function has its own reservation."""
    _, decisions = play(State(Limits(account_concurrency=10)), Arrival(claimed_by_others=10))
    assert decisions == [Throttle(ThrottleReason.ACCOUNT_CONCURRENCY)]
    limits = Limits(account_concurrency=10, reserved_concurrency=1)
    _, decisions = play(State(limits), Arrival(claimed_by_others=10))
    assert decisions == [Start(0)]


def test_function_claims_what_it_reserved_or_else_what_it_uses_and_has_provisioned() -> None:
    """A reservation counts whole; without one, provisioned places count although they are idle."""
    state, _ = play(provisioned_environments(2), Arrival("2"))
    assert claimed(state) == 3
    assert claimed(replace(state, limits=Limits(reserved_concurrency=7))) == 7


def test_scaling_rate_throttles_and_recovers_continuously() -> None:
    """A burst of 3 is refilled at 2 a second, to 3 and no more."""
    limits = Limits(scaling_burst=3, scaling_per_s=2.0)
    refused = Throttle(ThrottleReason("FunctionInvocationRateLimitExceeded"))
    state, decisions = play(State(limits), *[Arrival()] * 4, now=100.0)
    assert decisions == [Start(0), Start(1), Start(2), refused]
    state, decisions = play(state, *[Arrival()] * 2, now=100.5)
    assert decisions == [Start(3), refused]
    _, decisions = play(state, *[Arrival()] * 4, now=200.0)
    assert decisions[3] == refused


def test_warm_starts_do_not_count_against_the_scaling_rate() -> None:
    """The rate is one of new environments, not of invocations."""
    _, decisions = play(ready_environments(1, Limits(scaling_burst=1, scaling_per_s=0.0)), Arrival())
    assert decisions == [Lease(0)]


# The request rate.


def quick(state: State, count: int, now: float, **arrival: Any) -> tuple[State, list[Decision]]:
    """So many invocations one after the other, each over before the next one comes."""
    decisions: list[Decision] = []
    for _ in range(count):
        state, decision = decide(state, Arrival(**arrival), now)
        decisions.append(decision)
        if isinstance(decision, Start):
            state, _ = decide(state, Initialized(decision.environment_id), now)
        if isinstance(decision, Start | Lease):
            state, _ = decide(state, Finished(decision.environment_id), now)
    return state, decisions


def throttled(decisions: list[Decision]) -> list[ThrottleReason]:
    return [decision.reason for decision in decisions if isinstance(decision, Throttle)]


def test_reservation_admits_ten_requests_a_second_for_each_environment() -> None:
    """A reservation of 2 admits 20 quick requests in a second, and the next second as many again."""
    state, decisions = quick(State(Limits(reserved_concurrency=2)), 22, now=7.0)
    assert throttled(decisions) == ["ReservedFunctionInvocationRateLimitExceeded"] * 2
    _, decisions = quick(state, 20, now=8.0)
    assert throttled(decisions) == []


def test_account_admits_ten_requests_a_second_for_each_environment() -> None:
    """Without a reservation the account's rate holds, and what other functions requested counts."""
    state, decisions = quick(State(Limits(account_concurrency=1)), 8, now=7.0)
    assert (throttled(decisions), requested(state, 7.9), requested(state, 8.0)) == ([], 8, 0)
    _, decisions = quick(state, 3, now=7.5, requested_by_others=1)
    assert throttled(decisions) == ["FunctionInvocationRateLimitExceeded"] * 2


def test_request_rate_of_a_reservation_is_its_own() -> None:
    """A function with a reservation neither counts for the account, nor do others count for it."""
    limits = Limits(reserved_concurrency=1, account_concurrency=1)
    state, decisions = quick(State(limits), 10, now=0.0, requested_by_others=10)
    assert (throttled(decisions), requested(state, 0.0)) == ([], 0)


def requests_at(state: State, *moments: float) -> tuple[State, list[bool]]:
    """Whether each synchronous request is admitted, when each is answered at once."""
    admitted = []
    for now in moments:
        state, decision = decide(state, Arrival(), now)
        admitted.append(not isinstance(decision, Throttle))
        if isinstance(decision, Start):
            state, _ = decide(state, Initialized(decision.environment_id), now)
        if isinstance(decision, (Start, Lease)):
            state, _ = decide(state, Finished(decision.environment_id), now)
    return state, admitted


def test_rate_of_requests_grows_by_no_more_than_its_allowance() -> None:
    """By two a second at once, and by one more for each five seconds; what was reached once is kept."""
    limits = Limits(request_growth=2, requests_per_environment_s=None)
    state, admitted = requests_at(State(limits), 0.0, 0.1, 0.2)
    assert admitted == [True, True, False]
    state, admitted = requests_at(state, 6.0, 6.1, 6.2, 6.3)
    assert admitted == [True, True, True, False]
    _, admitted = requests_at(state, 7.0, 7.1, 7.2, 7.3)
    assert admitted == [True, True, True, False]


def test_growth_of_requests_can_be_switched_off_and_queues_have_none() -> None:
    """Like the request rate, it is about callers who wait."""
    free = Limits(request_growth=None, requests_per_environment_s=None)
    assert requests_at(State(free), *(n / 100 for n in range(50)))[1] == [True] * 50
    state = State(Limits(request_growth=0))
    assert isinstance(decide(state, Arrival(synchronous=False), 0.0)[1], Start)
    assert decide(state, Arrival(), 0.0)[1] == Throttle(ThrottleReason.INVOCATION_RATE)


def test_switches_leave_out_rates_and_nothing_else() -> None:
    """Concurrency and ages hold whatever is switched off."""
    off = Switches(request_rate=False, scaling_rate=False, allocation_rate=False).of(Limits())
    assert off == replace(
        Limits(),
        requests_per_environment_s=None,
        scaling_per_s=None,
        request_growth=None,
        allocation_per_s=None,
    )
    assert Switches().of(Limits()) == Limits()


def test_without_a_scaling_rate_any_number_starts_at_once() -> None:
    """None switches the rule off, whatever the burst."""
    state = State(Limits(scaling_burst=1, scaling_per_s=None))
    for number in range(5):
        state, decision = decide(state, Arrival(), 0.0)
        assert decision == Start(number)


def test_events_from_a_queue_have_no_request_rate() -> None:
    """Asynchronous invocations are bounded by concurrency alone, and take nothing from the rate."""
    state, decisions = quick(State(Limits(reserved_concurrency=1)), 100, now=0.0, synchronous=False)
    assert throttled(decisions) == []
    assert throttled(quick(state, 10, now=0.0)[1]) == []


def test_request_rate_can_be_switched_off() -> None:
    """Without the rule, concurrency alone limits."""
    limits = Limits(reserved_concurrency=1, requests_per_environment_s=None)
    assert throttled(quick(State(limits), 100, now=0.0)[1]) == []


@given(
    st.lists(st.tuples(st.floats(0.0, 0.7), st.booleans()), max_size=150),
    st.none() | st.integers(1, 2),
    st.integers(1, 3),
)
def test_no_second_has_more_requests_than_the_rate(
    arrivals: list[tuple[float, bool]], reserved: int | None, account: int
) -> None:
    """In any second the admitted synchronous requests are at most ten per environment, and none is refused
    below that."""
    state, now = State(Limits(reserved_concurrency=reserved, account_concurrency=account)), 0.0
    admitted: Counter[int] = Counter()
    allowed = 10 * (reserved or account)
    for wait_s, synchronous in arrivals:
        now += wait_s
        state, [decision] = quick(state, 1, now, synchronous=synchronous)
        if isinstance(decision, Throttle):
            assert (synchronous, admitted[int(now)]) == (True, allowed)
        admitted[int(now)] += synchronous and not isinstance(decision, Throttle)
    assert all(count <= allowed for count in admitted.values())


# How long environments live.


def test_environment_stops_at_its_greatest_age_however_busy_it_is() -> None:
    """An environment that serves without a pause is not leased again once it is too old."""
    state, _ = play(State(Limits(max_age_s=100.0)), Arrival(), Initialized(0), Finished(0))
    state, _ = play(state, KeepAliveCheck(), Arrival(), Finished(0), now=99.0)
    assert next_expiry(state) == 100.0
    _, decisions = play(state, KeepAliveCheck(), Arrival(), now=100.0)
    assert decisions == [Adjust(stop=(0,)), Start(1)]


def test_greatest_age_can_be_switched_off() -> None:
    """Without the rule, an environment in use lives on."""
    state, _ = play(State(Limits(max_age_s=None)), Arrival(), Initialized(0), Finished(0), now=0.0)
    state, _ = play(state, Arrival(), Finished(0), now=500.0)
    for now in range(1000, 1_000_000, 500):
        state, decisions = play(state, KeepAliveCheck(), Arrival(), Finished(0), now=float(now))
        assert decisions[:2] == [None, Lease(0)]


def test_caller_may_draw_how_long_an_environment_is_kept() -> None:
    """The one that was told a shorter time stops first, although it was used last."""
    state, _ = play(State(Limits(keep_alive_s=600.0)), Arrival(), Arrival(), Initialized(0), Initialized(1))
    state, _ = play(state, Finished(0), Finished(1, keep_alive_s=5.0))
    assert next_expiry(state) == 5.0
    _, decisions = play(state, KeepAliveCheck(), Arrival(), now=5.0)
    assert decisions == [Adjust(stop=(1,)), Lease(0)]


# The allocation rate of provisioned concurrency.


def begins(state: State) -> list[float]:
    """When the init phase of each environment may begin."""
    return [state.environments[environment_id].started_at for environment_id in sorted(state.environments)]


def test_provisioned_environments_are_allocated_at_a_rate() -> None:
    """Two at once, and then two a second; allowance that was not used comes back."""
    limits = Limits(allocation_burst=2, allocation_per_s=2.0)
    state, _ = play(State(limits), SetProvisioned("1", 5), now=10.0)
    assert begins(state) == [10.0, 10.0, 10.5, 11.0, 11.5]
    state, _ = play(state, SetProvisioned("1", 6), now=11.0)
    assert begins(state)[5] == 12.0
    state, _ = play(state, SetProvisioned("2", 3), now=100.0)
    assert begins(state)[6:] == [100.0, 100.0, 100.5]


def test_six_thousand_provisioned_environments_take_a_minute() -> None:
    """AWS's rate is the default; without the rule all begin at once."""
    state, _ = play(State(), SetProvisioned("1", 6000))
    assert max(begins(state)) == pytest.approx(59.0)
    state, _ = play(State(Limits(allocation_per_s=None)), SetProvisioned("1", 6000))
    assert max(begins(state)) == 0.0


# SnapStart.


def test_snapstart_restores_what_it_starts() -> None:
    """Environments of that version alone are restored, until SnapStart is off again."""
    _, decisions = play(State(), SetSnapStart("1", True), Arrival("1"), Arrival("2"))
    assert decisions[1:] == [Start(0, restored=True), Start(1)]
    _, decisions = play(State(), SetSnapStart("1", True), SetSnapStart("1", False), Arrival("1"))
    assert decisions[2] == Start(0)


def test_successor_of_a_crashed_environment_runs_a_full_init_phase() -> None:
    """One start after each crash is no restore; an environment that fails in its init phase is no crash."""
    state, _ = play(State(), SetSnapStart("1", True), Arrival("1"), Initialized(0), Died(0))
    state, decisions = play(state, Arrival("1"), Arrival("1"), Died(1), Arrival("1"))
    assert decisions == [Start(1), Start(2, restored=True), None, Start(3, restored=True)]


# What a developer's machine bears.


def test_machine_s_limit_throttles_as_a_small_account_does() -> None:
    """It is nobody's reservation: the reason is the account's, and nothing is claimed from the account."""
    state, decisions = play(State(Limits(machine_environments=1)), Arrival(), Arrival())
    assert decisions == [Start(0), Throttle(ThrottleReason("ConcurrentInvocationLimitExceeded"))]
    assert claimed(state) == 1


def test_machine_s_limit_gives_way_to_what_was_asked_for_by_name() -> None:
    """More provisioned concurrency is borne, and a reservation stands in its place."""
    state = provisioned_environments(2, Limits(machine_environments=1))
    _, decisions = play(state, *[Arrival("1")] * 3)
    assert [type(decision) for decision in decisions] == [Lease, Lease, Throttle]
    _, decisions = play(State(Limits(machine_environments=1, reserved_concurrency=2)), *[Arrival()] * 2)
    assert decisions == [Start(0), Start(1)]


def test_recycle_replaces_environments_once_they_are_free() -> None:
    """Idle ones stop at once and provisioned ones are replaced; busy ones stop when they finish."""
    state, _ = play(provisioned_environments(2), Arrival("1"), Arrival("2"), Arrival("2"))
    state, _ = play(state, Initialized(2), Finished(2), Initialized(3))
    state, decisions = play(state, Recycle(), Finished(1), Finished(3))
    assert decisions == [Adjust((4,), (0, 2)), Adjust((5,), (1,)), Adjust((), (3,))]
    assert state.in_flight == 0


def test_limits_may_change_at_run_time() -> None:
    """A lower limit refuses although environments are ready."""
    limits = Limits(reserved_concurrency=0)
    _, decisions = play(ready_environments(1), SetLimits(limits), Arrival())
    assert decisions[1] == Throttle(ThrottleReason.RESERVED_CONCURRENCY)


def test_impossible_event_says_what_was_found_and_expected() -> None:
    """The message names the environment, its state, the state expected and the way out."""
    with pytest.raises(ImpossibleEvent, match=r"Environment 0 is READY, expected INVOKING.*Send"):
        decide(ready_environments(1), Finished(0), 0.0)


VERSIONS = ("1", "2")
limits_strategy = st.builds(
    Limits,
    keep_alive_s=st.floats(0.0, 20.0),
    reserved_concurrency=st.none() | st.integers(0, 6),
    account_concurrency=st.integers(0, 8),
    scaling_burst=st.integers(0, 12),
    scaling_per_s=st.none() | st.floats(0.0, 2.0),
    request_growth=st.none() | st.integers(0, 6),
    machine_environments=st.none() | st.integers(0, 6),
    requests_per_environment_s=st.none() | st.floats(0.0, 3.0),
    max_age_s=st.none() | st.floats(0.0, 60.0),
    allocation_burst=st.integers(0, 3),
    allocation_per_s=st.none() | st.floats(0.5, 3.0),
)


class AdmissionMachine(RuleBasedStateMachine):
    """Any order of events, beside what a caller of the rules knows by itself from the decisions."""

    def __init__(self) -> None:
        super().__init__()
        self.state = State()
        self.now = 0.0
        self.arrivals = self.completed = self.throttled = 0
        self.version_of: dict[int, str] = {}
        self.provisioned: set[int] = set()
        self.initializing: set[int] = set()
        self.idle: set[int] = set()
        self.working_on: dict[int, int] = {}
        self.targets = dict.fromkeys(VERSIONS, 0)

    @initialize(limits=limits_strategy)
    def limited(self, limits: Limits) -> None:
        self.state = State(limits)

    def decide(self, event: Event) -> Decision:
        self.state, decision = decide(self.state, event, self.now)
        if isinstance(decision, Adjust):
            for environment_id in decision.stop:
                assert environment_id not in self.working_on, "stopped in the middle of an invocation"
                self.forget(environment_id)
        return decision

    def started(self, decision: Decision, version: str) -> None:
        """Environments that a decision started ahead of traffic."""
        for environment_id in decision.start if isinstance(decision, Adjust) else ():
            self.version_of[environment_id] = version
            self.provisioned.add(environment_id)
            self.initializing.add(environment_id)

    def forget(self, environment_id: int) -> None:
        del self.version_of[environment_id]
        self.completed += self.working_on.pop(environment_id, None) is not None
        for group in (self.provisioned, self.initializing, self.idle):
            group.discard(environment_id)

    def idle_of(self, version: str, provisioned: bool) -> set[int]:
        return {
            i for i in self.idle if self.version_of[i] == version and (i in self.provisioned) == provisioned
        }

    @rule(version=st.sampled_from(VERSIONS), others=st.integers(0, 3))
    def arrive(self, version: str, others: int) -> None:
        self.arrivals += 1
        idle_provisioned, idle_on_demand = self.idle_of(version, True), self.idle_of(version, False)
        decision = self.decide(Arrival(version, others))
        if isinstance(decision, Throttle):
            self.throttled += 1
            return
        assert isinstance(decision, (Lease, Start))
        environment_id = decision.environment_id
        assert environment_id not in self.working_on, "two invocations in one environment"
        if isinstance(decision, Start):
            assert not idle_provisioned, "a cold start while a provisioned environment was ready"
            assert not idle_on_demand, "a cold start while an environment was ready"
            self.version_of[environment_id] = version
            self.initializing.add(environment_id)
        else:
            assert environment_id in (idle_provisioned or idle_on_demand)
            assert decision.provisioned == (environment_id in self.provisioned)
            self.idle.remove(environment_id)
        if decision.spillover:
            assert not idle_provisioned, "spillover while a provisioned environment was ready"
            assert any(self.version_of[i] == version and i in self.provisioned for i in self.working_on)
        self.working_on[environment_id] = self.arrivals

    @precondition(lambda self: self.initializing)
    @rule(data=st.data())
    def initialized(self, data: st.DataObject) -> None:
        environment_id = data.draw(st.sampled_from(sorted(self.initializing)))
        self.initializing.remove(environment_id)
        if environment_id in self.provisioned:
            self.idle.add(environment_id)
        self.started(self.decide(Initialized(environment_id)), self.version_of[environment_id])

    @precondition(lambda self: self.working_on.keys() - self.initializing)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        environment_id = data.draw(st.sampled_from(sorted(self.working_on.keys() - self.initializing)))
        version = self.version_of[environment_id]
        self.completed += 1
        del self.working_on[environment_id]
        self.started(self.decide(Finished(environment_id)), version)
        if environment_id in self.version_of:
            self.idle.add(environment_id)

    @precondition(lambda self: self.version_of)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        environment_id = data.draw(st.sampled_from(sorted(self.version_of)))
        version = self.version_of[environment_id]
        self.forget(environment_id)
        self.started(self.decide(Died(environment_id)), version)

    @rule(version=st.sampled_from(VERSIONS), concurrency=st.integers(0, 4))
    def provision(self, version: str, concurrency: int) -> None:
        self.targets[version] = concurrency
        self.started(self.decide(SetProvisioned(version, concurrency)), version)

    @rule()
    def recycle(self) -> None:
        decision = self.decide(Recycle())
        for environment_id in decision.start if isinstance(decision, Adjust) else ():
            self.started(Adjust(start=(environment_id,)), self.state.environments[environment_id].version)
        assert not self.idle

    @rule(seconds=st.floats(0.0, 30.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        provisioned = set(self.provisioned)
        self.decide(KeepAliveCheck())
        assert provisioned == self.provisioned, "a provisioned environment expired"
        due = next_expiry(self.state)
        assert due is None or due > self.now - 1e-6

    @invariant()
    def every_arrival_is_accounted_for(self) -> None:
        assert self.arrivals == self.completed + self.throttled + self.state.in_flight
        assert self.state.in_flight == len(self.working_on)

    @invariant()
    def the_rules_know_what_the_caller_knows(self) -> None:
        states = {i: environment.state for i, environment in self.state.environments.items()}
        expected = dict.fromkeys(self.idle, EnvironmentState.READY)
        expected |= dict.fromkeys(self.working_on, EnvironmentState.INVOKING)
        expected |= dict.fromkeys(self.initializing, EnvironmentState.INIT)
        assert states == expected
        assert {i for i, of in self.state.environments.items() if of.provisioned} == self.provisioned

    @invariant()
    def provisioned_environments_are_as_many_as_asked_for(self) -> None:
        """More only while they are busy, fewer only after failed init phases."""
        for version, target in self.targets.items():
            mine = {i for i in self.provisioned if self.version_of[i] == version}
            of_version = self.state.provisioned.get(version)
            if len(mine) > target:
                assert mine <= self.working_on.keys()
            elif len(mine) < target:
                assert of_version is not None
                assert of_version.failed

    @invariant()
    def idle_environments_are_in_order_of_use(self) -> None:
        for ready in self.state.ready.values():
            since = [idle.since for idle in ready]
            assert since == sorted(since)

    @invariant()
    def limits_hold(self) -> None:
        limits = self.state.limits
        reserved = limits.reserved_concurrency
        assert self.state.in_flight <= limits.account_concurrency
        assert reserved is None or self.state.in_flight <= reserved


TestAdmission = AdmissionMachine.TestCase


@given(st.integers(1, 6), st.floats(0.0, 100.0), st.floats(0.0, 200.0))
def test_check_at_the_next_expiry_stops_something(count: int, keep_alive_s: float, later: float) -> None:
    """A timer set to `next_expiry` finds work to do, and leaves nothing that was due."""
    state = ready_environments(count, Limits(keep_alive_s=keep_alive_s))
    due = next_expiry(state)
    assert due is not None
    state, decision = decide(state, KeepAliveCheck(), due + later)
    assert isinstance(decision, Adjust)
    remaining = next_expiry(state)
    assert remaining is None or remaining > due + later
