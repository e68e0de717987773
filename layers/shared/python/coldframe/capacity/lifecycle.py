"""Reports of an environment: it is ready, has answered, has ended, or is past its idle time."""

from __future__ import annotations

import math
from dataclasses import replace

from coldframe.capacity.copies import expect, moved, with_provisioned, without
from coldframe.capacity.events import Adjust, Decision
from coldframe.capacity.provisioned import adjust
from coldframe.capacity.states import MAX_INIT_FAILURES, EnvironmentState, Idle, Limits, State


def initialized(state: State, environment_id: int, now: float) -> tuple[State, Decision]:
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
    # This success ends a series of failures, so environments that `adjust` had given up are started again.
    return adjust(state, version, now)


def finished(
    state: State, environment_id: int, keep_alive_s: float | None, now: float
) -> tuple[State, Decision]:
    """The environment is idle, or stops because it is outdated or surplus."""
    environment = expect(state, environment_id, EnvironmentState.INVOKING)
    version = environment.version
    outdated = environment_id < state.outdated_below
    if environment.provisioned:
        of_version = state.provisioned[version]
        if outdated or of_version.environments > of_version.target:
            return adjust(without(state, environment_id), version, now, (environment_id,))
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
    until = _idle_until(state.limits, environment.started_at, keep_alive_s, now)
    ready = (*state.ready.get(version, ()), Idle(environment_id, now, until))
    state = replace(
        state,
        idle_until=min(state.idle_until, until),
        environments=moved(state, environment_id, EnvironmentState.READY),
        ready={**state.ready, version: ready},
        on_demand_in_flight=state.on_demand_in_flight - 1,
    )
    given_up = state.provisioned.get(version)
    if given_up is None or not given_up.failed:
        return state, None
    # The version serves on demand, so its provisioned environments get one more attempt.
    once_more = replace(given_up, failures=MAX_INIT_FAILURES - 1)
    return adjust(with_provisioned(state, version, once_more), version, now)


def died(state: State, environment_id: int, now: float) -> tuple[State, Decision]:
    """Also accepts an environment that is stopped already: it may die while it is being stopped."""
    if state.state_of(environment_id) is EnvironmentState.STOPPED:
        return state, None
    environment = state.environments[environment_id]
    state = without(state, environment_id)
    version = environment.version
    if not environment.provisioned:
        if version in state.snapstart and environment.state is EnvironmentState.INVOKING:
            state = replace(state, crashed={**state.crashed, version: state.crashed.get(version, 0) + 1})
        return state, None
    if environment.state is EnvironmentState.INIT:
        of_version = state.provisioned[version]
        failing = replace(of_version, failures=of_version.failures + 1)
        state = with_provisioned(state, version, failing)
    return adjust(state, version, now)


def stop_idle(state: State, now: float) -> tuple[State, Decision]:
    """Stops on-demand environments past their idle time or their maximum age."""
    if now < state.idle_until:  # most checks, which run on every request, end here
        return state, None
    idle = [one for of_version in state.ready.values() for one in of_version]
    expired = sorted((one for one in idle if one.until <= now), key=lambda one: one.since)
    stopped = tuple(one.environment_id for one in expired)
    for environment_id in stopped:
        state = without(state, environment_id)
    state = replace(state, idle_until=min((one.until for one in idle if one.until > now), default=math.inf))
    return state, (Adjust(stop=stopped) if stopped else None)


def _idle_until(limits: Limits, started_at: float, keep_alive_s: float | None, now: float) -> float:
    """When an environment that becomes idle now is to be stopped."""
    until = now + (limits.keep_alive_s if keep_alive_s is None else keep_alive_s)
    return until if limits.max_age_s is None else min(until, started_at + limits.max_age_s)
