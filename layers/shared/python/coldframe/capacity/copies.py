"""Copies of a function's state in which one environment has moved or stopped."""

from __future__ import annotations

from dataclasses import replace

from coldframe.capacity.states import Environment, EnvironmentState, ImpossibleEvent, Provisioned, State


def with_provisioned(state: State, version: str, provisioned: Provisioned) -> State:
    """The state with this provisioned concurrency of a version."""
    return replace(state, provisioned={**state.provisioned, version: provisioned})


def set_snapstart(state: State, version: str, enabled: bool) -> State:
    """The state in which environments of this version start from a snapshot, or do not."""
    others = state.snapstart - {version}
    crashed = {other: count for other, count in state.crashed.items() if other != version}
    return replace(state, snapstart=others | {version} if enabled else others, crashed=crashed)


def moved(state: State, environment_id: int, to: EnvironmentState) -> dict[int, Environment]:
    """All environments, with one in another state."""
    before = state.environments[environment_id]
    after = Environment(before.version, before.provisioned, to, before.started_at)
    return {**state.environments, environment_id: after}


def without(state: State, environment_id: int) -> State:
    """The state after an environment has stopped, whatever it was doing."""
    environment = state.environments[environment_id]
    rest = dict(state.environments)
    del rest[environment_id]
    state = replace(state, environments=rest)
    version, busy = environment.version, environment.state is not EnvironmentState.READY
    if not environment.provisioned:
        if busy:
            return replace(state, on_demand_in_flight=state.on_demand_in_flight - 1)
        ready = tuple(idle for idle in state.ready[version] if idle.environment_id != environment_id)
        return replace(state, ready={**state.ready, version: ready})
    of_version = state.provisioned[version]
    match environment.state:
        case EnvironmentState.INIT:
            less = replace(of_version, initializing=of_version.initializing - 1)
        case EnvironmentState.INVOKING:
            less = replace(of_version, invoking=of_version.invoking - 1)
            state = replace(state, provisioned_in_flight=state.provisioned_in_flight - 1)
        case _:
            ready_ids = tuple(i for i in of_version.ready if i != environment_id)
            less = replace(of_version, ready=ready_ids)
    return with_provisioned(state, version, less)


def expect(state: State, environment_id: int, expected: EnvironmentState) -> Environment:
    """The environment, which must be in the expected state. Raises ImpossibleEvent."""
    environment = state.environments.get(environment_id)
    if environment is None or environment.state is not expected:
        raise ImpossibleEvent(
            f"Environment {environment_id} is {state.state_of(environment_id)}, expected {expected}. "
            "Send Initialized once after Start or Adjust, and Finished once after Initialized or Lease."
        )
    return environment
