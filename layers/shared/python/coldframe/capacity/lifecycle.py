"""An environment reports: it is up, it has answered, it is gone, or it has been idle for too long."""

from __future__ import annotations

from dataclasses import replace

from coldframe.capacity.copies import expect, moved, with_provisioned, without
from coldframe.capacity.events import Adjust, Decision
from coldframe.capacity.provisioned import adjust
from coldframe.capacity.states import MAX_INIT_FAILURES, EnvironmentState, Idle, State


def initialized(state: State, environment_id: int) -> tuple[State, Decision]:
    """Its invocation starts; a provisioned environment waits for one."""
    environment = expect(state, environment_id, EnvironmentState.INIT)
    if not environment.provisioned:
        return replace(state, environments=moved(state, environment_id, EnvironmentState.INVOKING)), None
    version = environment.version
    of_version = state.provisioned[version]
    up = replace(
        of_version,
        initializing=of_version.initializing - 1,
        ready=(*of_version.ready, environment_id),
        failures=0,
    )
    state = with_provisioned(state, version, up)
    state = replace(state, environments=moved(state, environment_id, EnvironmentState.READY))
    # This success ended a row of failures, so environments that `adjust` had given up are started again.
    return adjust(state, version)


def finished(state: State, environment_id: int, now: float) -> tuple[State, Decision]:
    """The environment is idle, or stops because it is outdated or one too many."""
    environment = expect(state, environment_id, EnvironmentState.INVOKING)
    version = environment.version
    outdated = environment_id < state.outdated_below
    if environment.provisioned:
        of_version = state.provisioned[version]
        if outdated or of_version.environments > of_version.target:
            return adjust(without(state, environment_id), version, (environment_id,))
        idle = replace(
            of_version, invoking=of_version.invoking - 1, ready=(*of_version.ready, environment_id)
        )
        return replace(
            state,
            environments=moved(state, environment_id, EnvironmentState.READY),
            provisioned={**state.provisioned, version: idle},
            provisioned_in_flight=state.provisioned_in_flight - 1,
        ), None
    if outdated:
        return without(state, environment_id), Adjust(stop=(environment_id,))
    ready = (*state.ready.get(version, ()), Idle(environment_id, now))
    state = replace(
        state,
        environments=moved(state, environment_id, EnvironmentState.READY),
        ready={**state.ready, version: ready},
        on_demand_in_flight=state.on_demand_in_flight - 1,
    )
    given_up = state.provisioned.get(version)
    if given_up is None or not given_up.failed:
        return state, None
    # The version serves on demand, so its provisioned environments get one more attempt.
    once_more = replace(given_up, failures=MAX_INIT_FAILURES - 1)
    return adjust(with_provisioned(state, version, once_more), version)


def died(state: State, environment_id: int) -> tuple[State, Decision]:
    """Also for an environment that is stopped already: it may die while it is being stopped."""
    if state.state_of(environment_id) is EnvironmentState.STOPPED:
        return state, None
    environment = state.environments[environment_id]
    state = without(state, environment_id)
    if not environment.provisioned:
        return state, None
    version = environment.version
    if environment.state is EnvironmentState.INIT:
        of_version = state.provisioned[version]
        failing = replace(of_version, failures=of_version.failures + 1)
        state = with_provisioned(state, version, failing)
    return adjust(state, version)


def stop_idle(state: State, now: float) -> tuple[State, Decision]:
    """Stops on-demand environments that were idle for `keep_alive_s`."""
    due = now - state.limits.keep_alive_s
    expired = [
        idle
        for of_version in state.ready.values()
        # The first one tells for most checks, which run on every request, that none is due.
        if of_version and of_version[0].since <= due
        for idle in of_version
        if idle.since <= due
    ]
    if not expired:
        return state, None
    stopped = tuple(idle.environment_id for idle in sorted(expired, key=lambda idle: idle.since))
    for environment_id in stopped:
        state = without(state, environment_id)
    return state, Adjust(stop=stopped)
