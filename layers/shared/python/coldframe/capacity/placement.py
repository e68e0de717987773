"""Placement of an arrival: a ready environment, a new one, or a throttle. The rules stand at `place`."""

from __future__ import annotations

from dataclasses import replace

from coldframe.capacity.copies import moved
from coldframe.capacity.events import Arrival, Decision, Lease, Start, Throttle
from coldframe.capacity.limits import SCALING_PERIOD
from coldframe.capacity.states import (
    NO_PROVISIONED,
    Environment,
    EnvironmentState,
    Provisioned,
    State,
    ThrottleReason,
)


def place(state: State, arrival: Arrival, now: float) -> tuple[State, Decision]:
    """Rules in order of priority:

    1. A limit on invocations in flight is reached: throttle. First, because a limit
       lowered at run time holds even while idle environments are left.
    2. This second's synchronous invocations have reached the request rate, or the rate would grow faster than
       it may: throttle, however many environments are ready.
    3. A provisioned environment of the version is ready: lease it.
    4. Provisioned concurrency leaves nothing of the limit to on-demand environments: throttle.
       It is set aside even while it is idle.
    5. An on-demand environment of the version is ready: lease the most recently used one, so that
       a quiet function shrinks to the environments it needs and the rest expire.
    6. Environments were started faster than the scaling rate: throttle.
    7. Otherwise start a new one, with SnapStart from the snapshot. Only the successor of an environment that
       was lost in an invocation runs a full init phase: LambdaNER-Bench saw that on Java, read 2026-11.
    """
    version = arrival.version
    provisioned = state.provisioned.get(version, NO_PROVISIONED)
    reason = (
        _exceeded_limit(state, state.in_flight, 0)
        or _exceeded_rate(state, arrival, now)
        or _exceeded_growth(state, arrival, now)
    )
    if reason is None and provisioned.ready:
        return _lease_provisioned(state, version, provisioned)
    reason = reason or _exceeded_limit(state, used_concurrency(state), arrival.claimed_by_others)
    if reason is not None:
        return state, Throttle(reason)
    spillover = provisioned.allocated > 0
    if state.ready.get(version):
        return _lease_on_demand(state, version, spillover)
    return _start_on_demand(state, version, spillover, now)


def _exceeded_limit(state: State, used: int, claimed_by_others: int) -> ThrottleReason | None:
    limits = state.limits
    reserved = limits.reserved_concurrency
    if reserved is not None:
        if used >= reserved:
            return ThrottleReason.RESERVED_CONCURRENCY
        claimed_by_others = 0  # other functions cannot use a reservation
    elif limits.machine_environments is not None:
        # AWS has no such limit. The throttle reason is the account's and not a reservation's, because a
        # client sees the former in a small account: the unreserved concurrency is used up.
        provisioned = sum(of_version.target for of_version in state.provisioned.values())
        if used >= max(limits.machine_environments, provisioned):
            return ThrottleReason.ACCOUNT_CONCURRENCY
    if used + claimed_by_others >= limits.account_concurrency:
        return ThrottleReason.ACCOUNT_CONCURRENCY
    return None


def _exceeded_rate(state: State, arrival: Arrival, now: float) -> ThrottleReason | None:
    limits = state.limits
    if limits.requests_per_environment_s is None or not arrival.synchronous:
        return None
    reserved, requests = limits.reserved_concurrency, requests_of_second(state, now)
    if reserved is not None:
        exceeded = requests >= reserved * limits.requests_per_environment_s
        return ThrottleReason.RESERVED_REQUEST_RATE if exceeded else None
    allowed = limits.account_concurrency * limits.requests_per_environment_s
    exceeded = requests + arrival.requested_by_others >= allowed
    return ThrottleReason.INVOCATION_RATE if exceeded else None


def _exceeded_growth(state: State, arrival: Arrival, now: float) -> ThrottleReason | None:
    growth = state.limits.request_growth
    if growth is None or not arrival.synchronous or requests_of_second(state, now) < state.grown_to:
        return None
    return ThrottleReason.INVOCATION_RATE if _growth(state, growth, now) + 1 > growth else None


def _growth(state: State, growth: int, now: float) -> float:
    """Request growth that still counts against the limit."""
    return max(0.0, state.grown - (now - state.grown_at) * (growth / SCALING_PERIOD.value))


def count_request(state: State, now: float) -> State:
    """The state with one more synchronous invocation admitted."""
    requests, growth = requests_of_second(state, now) + 1, state.limits.request_growth
    if requests > state.grown_to:
        if growth is not None:
            state = replace(state, grown=_growth(state, growth, now) + 1, grown_at=now)
        state = replace(state, grown_to=requests)
    return replace(state, second=int(now), requests=requests)


def requests_of_second(state: State, now: float) -> int:
    """Synchronous invocations that were admitted in this second of the caller's clock."""
    return state.requests if state.second == int(now) else 0


def used_concurrency(state: State) -> int:
    """Concurrency in use on demand, plus provisioned concurrency, or its use if that is larger."""
    used = state.on_demand_in_flight
    for provisioned in state.provisioned.values():
        used += max(provisioned.target, provisioned.invoking)
    return used


def _lease_provisioned(state: State, version: str, provisioned: Provisioned) -> tuple[State, Decision]:
    leased = provisioned.ready[-1]
    busy = replace(provisioned, ready=provisioned.ready[:-1], invoking=provisioned.invoking + 1)
    state = replace(
        state,
        environments=moved(state, leased, EnvironmentState.INVOKING),
        provisioned={**state.provisioned, version: busy},
        provisioned_in_flight=state.provisioned_in_flight + 1,
    )
    return state, Lease(leased, provisioned=True)


def _lease_on_demand(state: State, version: str, spillover: bool) -> tuple[State, Decision]:
    *_, idle = ready = state.ready[version]
    state = replace(
        state,
        environments=moved(state, idle.environment_id, EnvironmentState.INVOKING),
        ready={**state.ready, version: ready[:-1]},
        on_demand_in_flight=state.on_demand_in_flight + 1,
    )
    return state, Lease(idle.environment_id, spillover=spillover)


def _start_on_demand(state: State, version: str, spillover: bool, now: float) -> tuple[State, Decision]:
    limits = state.limits
    scaled = 0.0
    if limits.scaling_per_s is not None:
        scaled = max(0.0, state.scaled - (now - state.scaled_at) * limits.scaling_per_s) + 1
        if scaled > limits.scaling_burst:
            return state, Throttle(ThrottleReason.INVOCATION_RATE)
    new = state.started
    started = Environment(version, False, EnvironmentState.INIT, now)
    crashed = state.crashed.get(version, 0)
    restored = version in state.snapstart and not crashed
    if crashed:
        state = replace(state, crashed={**state.crashed, version: crashed - 1})
    state = replace(
        state,
        environments={**state.environments, new: started},
        on_demand_in_flight=state.on_demand_in_flight + 1,
        started=new + 1,
        scaled=scaled,
        scaled_at=now,
    )
    return state, Start(new, spillover, restored)
