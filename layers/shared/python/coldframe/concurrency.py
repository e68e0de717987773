"""Admission rules of Lambda concurrency: which execution environment an invocation gets, if any.

Pure: no clock, no locks, no I/O. The emulator asks in real time, the simulator in
virtual time; both send every event through `decide`, so they cannot disagree.

An execution environment is in exactly one state:

    INIT      started for an invocation, which waits for it
    READY     idle, kept alive for the next invocation
    INVOKING  busy with its one invocation
    STOPPED   gone; its id is never used again

    Arrival -> Start        a new environment in INIT
    Arrival -> Lease        READY -> INVOKING
    Arrival -> Throttle     nothing changes
    Initialized             INIT -> INVOKING, with the invocation that waited
    Finished                INVOKING -> READY
    Died                    any state -> STOPPED
    KeepAliveCheck -> Stop  READY for `keep_alive_s` or longer -> STOPPED
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class EnvironmentState(StrEnum):
    """Where an execution environment is in its life; the module describes each state."""

    INIT = "INIT"
    READY = "READY"
    INVOKING = "INVOKING"
    STOPPED = "STOPPED"


class ThrottleReason(StrEnum):
    """`Reason` of Lambda's TooManyRequestsException.

    Source: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html, read 2026-11.
    """

    RESERVED_CONCURRENCY = "ReservedFunctionConcurrentInvocationLimitExceeded"
    ACCOUNT_CONCURRENCY = "ConcurrentInvocationLimitExceeded"


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the environments of one function.

    keep_alive_s: an environment idle for this long is stopped. AWS does not publish its own.
    reserved_concurrency: invocations in flight of this function; None when nothing is reserved.
    account_concurrency: invocations in flight of the whole account, which is this function alone.
    """

    keep_alive_s: float = 600.0
    reserved_concurrency: int | None = None
    account_concurrency: int = 1000


@dataclass(frozen=True, slots=True)
class Arrival:
    """An invocation asks for an environment."""


@dataclass(frozen=True, slots=True)
class Initialized:
    """The init phase of an environment is over; the invocation that waited starts."""

    environment_id: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The invocation of an environment is answered, and the environment asks for more."""

    environment_id: int


@dataclass(frozen=True, slots=True)
class Died:
    """An environment is gone (crash, timeout, failed init), and its invocation with it."""

    environment_id: int


@dataclass(frozen=True, slots=True)
class KeepAliveCheck:
    """Time has passed: environments idle for too long are to be stopped."""


Event = Arrival | Initialized | Finished | Died | KeepAliveCheck


@dataclass(frozen=True, slots=True)
class Lease:
    """The invocation gets this ready environment: a warm start."""

    environment_id: int


@dataclass(frozen=True, slots=True)
class Start:
    """The invocation gets this environment, which has to be started first: a cold start."""

    environment_id: int


@dataclass(frozen=True, slots=True)
class Throttle:
    """The invocation is refused."""

    reason: ThrottleReason


@dataclass(frozen=True, slots=True)
class Stop:
    """These environments are to be stopped, longest idle first."""

    environment_ids: tuple[int, ...]


Decision = Lease | Start | Throttle | Stop | None


@dataclass(frozen=True, slots=True)
class Idle:
    """A ready environment and the moment at which it became ready."""

    environment_id: int
    since: float


@dataclass(frozen=True, slots=True)
class State:
    """Every environment of one function.

    ready: most recently used last, so leases pop the end and expiry eats the front.
    started: environments ever started, which is also the next environment's id.
    """

    limits: Limits = Limits()
    ready: tuple[Idle, ...] = ()
    initializing: frozenset[int] = frozenset()
    invoking: frozenset[int] = frozenset()
    started: int = 0

    @property
    def in_flight(self) -> int:
        """Invocations admitted and not yet answered: Lambda's ConcurrentExecutions."""
        return len(self.initializing) + len(self.invoking)

    @property
    def environments(self) -> int:
        """Environments that are not stopped."""
        return self.in_flight + len(self.ready)

    def state_of(self, environment_id: int) -> EnvironmentState:
        """The state of an environment that was started at some time.

        Raises ImpossibleEvent for an id that was never given out.
        """
        if not 0 <= environment_id < self.started:
            raise ImpossibleEvent(
                f"Environment {environment_id} was never started: ids run from 0 to {self.started - 1}. "
                "Send only ids that came with a Start or Lease decision."
            )
        if environment_id in self.invoking:
            return EnvironmentState.INVOKING
        if environment_id in self.initializing:
            return EnvironmentState.INIT
        if any(idle.environment_id == environment_id for idle in self.ready):
            return EnvironmentState.READY
        return EnvironmentState.STOPPED


class ImpossibleEvent(ValueError):
    """An event that contradicts the state: a mistake of the caller, never of a request."""


def decide(state: State, event: Event, now: float) -> tuple[State, Decision]:
    """The state after `event`, and what the caller has to do about it.

    now: seconds on any clock that never runs backwards.
    Raises ImpossibleEvent when the event cannot happen in this state.
    """
    match event:
        case Arrival():
            return _admit(state)
        case Initialized(environment_id):
            return _initialized(state, environment_id), None
        case Finished(environment_id):
            return _finished(state, environment_id, now), None
        case Died(environment_id):
            return _died(state, environment_id), None
        case KeepAliveCheck():
            return _stop_idle(state, now)


def next_expiry(state: State) -> float | None:
    """When the longest idle environment is due to be stopped; None when none is idle."""
    return state.ready[0].since + state.limits.keep_alive_s if state.ready else None


def _admit(state: State) -> tuple[State, Decision]:
    """Rules in order of priority:

    1. A limit on invocations in flight is reached: throttle. First, because a limit
       lowered at run time holds even while idle environments are left.
    2. An environment is ready: lease the most recently used one, so that a quiet
       function shrinks to the environments it needs and the rest expire.
    3. Otherwise start a new one.
    """
    reason = _exceeded_limit(state)
    if reason is not None:
        return state, Throttle(reason)
    if state.ready:
        leased = state.ready[-1].environment_id
        return replace(state, ready=state.ready[:-1], invoking=state.invoking | {leased}), Lease(leased)
    new = state.started
    return replace(state, initializing=state.initializing | {new}, started=new + 1), Start(new)


def _exceeded_limit(state: State) -> ThrottleReason | None:
    reserved = state.limits.reserved_concurrency
    if reserved is not None and state.in_flight >= reserved:
        return ThrottleReason.RESERVED_CONCURRENCY
    if state.in_flight >= state.limits.account_concurrency:
        return ThrottleReason.ACCOUNT_CONCURRENCY
    return None


def _initialized(state: State, environment_id: int) -> State:
    _expect(state, environment_id, EnvironmentState.INIT)
    return replace(
        state,
        initializing=state.initializing - {environment_id},
        invoking=state.invoking | {environment_id},
    )


def _finished(state: State, environment_id: int, now: float) -> State:
    _expect(state, environment_id, EnvironmentState.INVOKING)
    return replace(
        state,
        invoking=state.invoking - {environment_id},
        ready=(*state.ready, Idle(environment_id, now)),
    )


def _died(state: State, environment_id: int) -> State:
    """Also for an environment that is stopped already: it may die while it is being stopped."""
    match state.state_of(environment_id):
        case EnvironmentState.INIT:
            return replace(state, initializing=state.initializing - {environment_id})
        case EnvironmentState.INVOKING:
            return replace(state, invoking=state.invoking - {environment_id})
        case EnvironmentState.READY:
            return replace(
                state, ready=tuple(idle for idle in state.ready if idle.environment_id != environment_id)
            )
        case EnvironmentState.STOPPED:
            return state


def _stop_idle(state: State, now: float) -> tuple[State, Decision]:
    expired = 0
    while expired < len(state.ready) and state.ready[expired].since + state.limits.keep_alive_s <= now:
        expired += 1
    if not expired:
        return state, None
    stopped = tuple(idle.environment_id for idle in state.ready[:expired])
    return replace(state, ready=state.ready[expired:]), Stop(stopped)


def _expect(state: State, environment_id: int, expected: EnvironmentState) -> None:
    # The two busy states first: this runs on every request, and they are set lookups.
    members = state.invoking if expected is EnvironmentState.INVOKING else state.initializing
    if environment_id not in members:
        raise ImpossibleEvent(
            f"Environment {environment_id} is {state.state_of(environment_id)}, expected {expected}. "
            "Send Initialized once after Start, and Finished once after Initialized or Lease."
        )
