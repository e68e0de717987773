"""Admission rules of Lambda concurrency: which execution environment an invocation gets, if any.

Pure: no clock, no locks, no I/O. The emulator calls the rules in real time, the simulator in virtual time;
both send every event through `decide`, so they cannot disagree.

An execution environment belongs to one version of the function, is on-demand or
provisioned for its whole life, and is in exactly one state:

    INIT      loads the function; on-demand: for an invocation, which waits for it
    READY     idle, kept for the next invocation
    INVOKING  busy with its one invocation
    STOPPED   ended; its id is never used again

    Arrival -> Lease           READY -> INVOKING
    Arrival -> Start           a new on-demand environment in INIT
    Arrival -> Throttle        nothing changes; `placement.place` has the rules
    Initialized                INIT -> INVOKING with the invocation that waited; provisioned: -> READY
    Finished                   INVOKING -> READY, or STOPPED when it is outdated or surplus
    Died                       any state -> STOPPED; a provisioned one is replaced
    KeepAliveCheck             on-demand and READY past its idle time or its maximum age -> STOPPED
    SetProvisioned, SetLimits  environments are started or stopped to fit
    SetSnapStart               new environments are restored from a snapshot, or run their init phase
    Recycle                    READY -> STOPPED, busy ones are outdated; provisioned ones are replaced

Every event but Arrival may answer with `Adjust`: environments to start ahead of traffic, or to stop.

This module is the entry point of the rules: it re-exports their events, decisions and states.
"""

from __future__ import annotations

from dataclasses import replace

from coldframe.capacity.copies import set_snapstart, with_provisioned
from coldframe.capacity.events import (
    Adjust,
    Arrival,
    Decision,
    Died,
    Event,
    Finished,
    Initialized,
    KeepAliveCheck,
    Lease,
    Recycle,
    SetLimits,
    SetProvisioned,
    SetSnapStart,
    Start,
    Throttle,
)
from coldframe.capacity.lifecycle import died, finished, initialized, stop_idle
from coldframe.capacity.placement import count_request, place, requests_of_second, used_concurrency
from coldframe.capacity.provisioned import adjust, recycle
from coldframe.capacity.states import (
    LATEST,
    NO_PROVISIONED,
    Environment,
    EnvironmentState,
    Idle,
    ImpossibleEvent,
    Limits,
    Provisioned,
    State,
    ThrottleReason,
)

__all__ = [
    "LATEST",
    "Adjust",
    "Arrival",
    "Decision",
    "Died",
    "Environment",
    "EnvironmentState",
    "Event",
    "Finished",
    "Idle",
    "ImpossibleEvent",
    "Initialized",
    "KeepAliveCheck",
    "Lease",
    "Limits",
    "Provisioned",
    "Recycle",
    "SetLimits",
    "SetProvisioned",
    "SetSnapStart",
    "Start",
    "State",
    "Throttle",
    "ThrottleReason",
    "claimed",
    "decide",
    "next_expiry",
    "requested",
]


def decide(state: State, event: Event, now: float) -> tuple[State, Decision]:
    """The state after `event`, and the decision for the caller to carry out.

    now: seconds on any clock that never runs backwards.
    Raises ImpossibleEvent when the event cannot happen in this state.
    """
    match event:
        case Arrival():
            return _admit(state, event, now)
        case Finished(environment_id, keep_alive_s):
            return finished(state, environment_id, keep_alive_s, now)
        case KeepAliveCheck():
            return stop_idle(state, now)
        case Initialized(environment_id):
            return initialized(state, environment_id, now)
        case Died(environment_id):
            return died(state, environment_id, now)
        case SetProvisioned(version, target, delayed):
            level = replace(state.provisioned.get(version, NO_PROVISIONED), target=target, failures=0)
            delay_s = state.limits.allocation_delay_s if delayed else 0.0
            return adjust(with_provisioned(state, version, level), version, now, delay_s=delay_s)
        case SetSnapStart(version, enabled):
            return set_snapstart(state, version, enabled), None
        case SetLimits(limits):
            return replace(state, limits=limits), None
        case Recycle():
            return recycle(state, now)


def next_expiry(state: State) -> float | None:
    """When the first idle environment is due to be stopped; None without idle environments."""
    return min((idle.until for of_version in state.ready.values() for idle in of_version), default=None)


def claimed(state: State) -> int:
    """Concurrency of the account that this function takes from the others.

    The reservation, or else the provisioned concurrency, used or not; plus the use beyond it.
    Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html, read 2026-11.
    """
    reserved = state.limits.reserved_concurrency
    return used_concurrency(state) if reserved is None else reserved


def requested(state: State, now: float) -> int:
    """Synchronous invocations of this second that this function takes from the account's request rate.

    A function with a reservation has its own rate, and takes nothing.
    """
    return requests_of_second(state, now) if state.limits.reserved_concurrency is None else 0


def _admit(state: State, arrival: Arrival, now: float) -> tuple[State, Decision]:
    """Counts an admitted synchronous invocation: refused ones leave the state unchanged."""
    after, decision = place(state, arrival, now)
    if isinstance(decision, Throttle) or not arrival.synchronous:
        return after, decision
    return count_request(after, now), decision
