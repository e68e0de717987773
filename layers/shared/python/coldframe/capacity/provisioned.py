"""Provisioned environments are made to fit: as many as asked for, of the newest code."""

from __future__ import annotations

from dataclasses import replace

from coldframe.capacity.copies import with_provisioned, without
from coldframe.capacity.events import Adjust, Decision
from coldframe.capacity.states import Environment, EnvironmentState, State


def recycle(state: State) -> tuple[State, Decision]:
    """Stops what is idle, and provisioned environments that still load the code of before."""
    stopped = tuple(
        environment_id
        for environment_id, environment in state.environments.items()
        if environment.state is EnvironmentState.READY
        or (environment.provisioned and environment.state is EnvironmentState.INIT)
    )
    for environment_id in stopped:
        state = without(state, environment_id)
    state = replace(state, outdated_below=state.started)
    started: tuple[int, ...] = ()
    for version, provisioned in state.provisioned.items():
        state = with_provisioned(state, version, replace(provisioned, failures=0))
        state, decision = adjust(state, version)
        started += decision.start if decision is not None else ()
    return state, (Adjust(started, stopped) if started or stopped else None)


def adjust(state: State, version: str, stopped: tuple[int, ...] = ()) -> tuple[State, Adjust | None]:
    """Starts what is missing of a version's provisioned environments, or stops what is too much.

    Idle ones are stopped first, then those that still load; busy ones when they finish.
    stopped: what the caller has stopped already, for the decision.
    """
    provisioned = state.provisioned[version]
    surplus = provisioned.environments - provisioned.target
    if surplus > 0:
        superfluous = (*provisioned.ready, *_initializing(state, version))[:surplus]
        for environment_id in superfluous:
            state = without(state, environment_id)
        stopped += superfluous
    missing = 0 if provisioned.failed else max(0, -surplus)
    started = tuple(range(state.started, state.started + missing))
    if started:
        state = _start_provisioned(state, version, started)
    provisioned = state.provisioned[version]
    if not (provisioned.target or provisioned.environments):
        rest = {other: of for other, of in state.provisioned.items() if other != version}
        state = replace(state, provisioned=rest)
    return state, (Adjust(started, stopped) if started or stopped else None)


def _start_provisioned(state: State, version: str, started: tuple[int, ...]) -> State:
    loading = Environment(version, True, EnvironmentState.INIT)
    of_version = state.provisioned[version]
    more = replace(of_version, initializing=of_version.initializing + len(started))
    environments = {**state.environments, **dict.fromkeys(started, loading)}
    state = replace(state, environments=environments, started=state.started + len(started))
    return with_provisioned(state, version, more)


def _initializing(state: State, version: str) -> list[int]:
    """Provisioned environments of a version that still load, youngest first."""
    loading = Environment(version, True, EnvironmentState.INIT)
    return [i for i, environment in state.environments.items() if environment == loading][::-1]
