"""Starts and stops provisioned environments to fit their target, with the newest code."""

from __future__ import annotations

from dataclasses import replace

from coldframe.capacity.copies import with_provisioned, without
from coldframe.capacity.events import Adjust, Decision
from coldframe.capacity.states import Environment, EnvironmentState, State


def recycle(state: State, now: float) -> tuple[State, Decision]:
    """Stops idle environments, and provisioned environments that still load the old code."""
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
    for version, provisioned in sorted(state.provisioned.items(), key=lambda item: item[0]):
        state = with_provisioned(state, version, replace(provisioned, failures=0))
        state, decision = adjust(state, version, now)
        started += decision.start if decision is not None else ()
    return state, (Adjust(started, stopped) if started or stopped else None)


def adjust(
    state: State, version: str, now: float, stopped: tuple[int, ...] = (), delay_s: float = 0.0
) -> tuple[State, Adjust | None]:
    """Starts missing provisioned environments of a version, or stops surplus ones.

    Idle ones are stopped first, then those in their init phase; busy ones when they finish.
    stopped: environments that the caller has stopped, for the decision. delay_s: delay of new environments.
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
        state = _start_provisioned(state, version, started, now, delay_s)
    provisioned = state.provisioned[version]
    if not (provisioned.target or provisioned.environments):
        rest = {other: of for other, of in state.provisioned.items() if other != version}
        state = replace(state, provisioned=rest)
    return state, (Adjust(started, stopped) if started or stopped else None)


def _start_provisioned(
    state: State, version: str, started: tuple[int, ...], now: float, delay_s: float
) -> State:
    of_version = state.provisioned[version]
    more = replace(of_version, initializing=of_version.initializing + len(started))
    limits, allocated = state.limits, _still_allocated(state, now)
    environments = dict(state.environments)
    for count, environment_id in enumerate(started, 1):
        begins_at = now + delay_s
        if limits.allocation_per_s is not None:
            over = allocated + count - limits.allocation_burst
            begins_at += max(0.0, over) / limits.allocation_per_s
        environments[environment_id] = Environment(version, True, EnvironmentState.INIT, begins_at)
    state = replace(
        state,
        environments=environments,
        started=state.started + len(started),
        allocated=allocated + len(started),
        allocated_at=now,
    )
    return with_provisioned(state, version, more)


def _still_allocated(state: State, now: float) -> float:
    """Environments that still count against the allocation rate."""
    per_s = state.limits.allocation_per_s
    return 0.0 if per_s is None else max(0.0, state.allocated - (now - state.allocated_at) * per_s)


def _initializing(state: State, version: str) -> list[int]:
    """Provisioned environments of a version in their init phase, youngest first."""
    return [
        environment_id
        for environment_id, environment in state.environments.items()
        if environment.provisioned
        and environment.version == version
        and environment.state is EnvironmentState.INIT
    ][::-1]
