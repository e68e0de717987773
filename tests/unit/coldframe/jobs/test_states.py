"""The states of a job."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.jobs.states import Event, State, state_after, states_before, step

EVENTS = st.lists(st.sampled_from(Event), max_size=20)


@settings(deadline=None)
@given(EVENTS)
def test_a_job_ends_once(events: list[Event]) -> None:
    """Whatever comes in whatever order, a job that has ended stays as it is."""
    state, ended = State.QUEUED, None
    for event in events:
        state = step(state, event)
        assert ended is None or state is ended
        ended = state if state.has_ended else None


@settings(deadline=None)
@given(EVENTS)
def test_done_was_running(events: list[Event]) -> None:
    """A job is done only after it ran, and runs only after it was queued."""
    states = [State.QUEUED]
    for event in events:
        states.append(step(states[-1], event))
    for before, after in pairwise(states):
        assert after is before or (after is not State.QUEUED)
        assert after is not State.DONE or before in (State.RUNNING, State.DONE)


@settings(deadline=None)
@given(st.sampled_from(State), st.sampled_from(Event))
def test_the_condition_of_a_store_is_the_rule(state: State, event: Event) -> None:
    """A conditional write changes what the rule changes, and nothing else."""
    changed = step(state, event)
    assert changed is (state_after(event) if state in states_before(event) else state)
    assert step(changed, event) is changed


@settings(deadline=None)
@given(st.permutations([Event.FINISH, Event.FAIL, Event.CANCEL]))
def test_the_first_end_wins(ends: list[Event]) -> None:
    """Of several ends of a running job the first one holds."""
    state = State.RUNNING
    for event in ends:
        state = step(state, event)
    assert state is state_after(ends[0])
