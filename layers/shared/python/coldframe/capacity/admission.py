"""Admission rules of Lambda concurrency: which execution environment an invocation gets, if any.

Pure: no clock, no locks, no I/O. The emulator asks in real time, the simulator in
virtual time; both send every event through `decide`, so they cannot disagree.

An execution environment belongs to one version of the function, is on-demand or
provisioned for its whole life, and is in exactly one state:

    INIT      loads the function; on-demand: for an invocation, which waits for it
    READY     idle, kept for the next invocation
    INVOKING  busy with its one invocation
    STOPPED   gone; its id is never used again

    Arrival -> Lease           READY -> INVOKING
    Arrival -> Start           a new on-demand environment in INIT
    Arrival -> Throttle        nothing changes
    Initialized                INIT -> INVOKING with the invocation that waited; provisioned: -> READY
    Finished                   INVOKING -> READY, or STOPPED when it is outdated or one too many
    Died                       any state -> STOPPED; a provisioned one is replaced
    KeepAliveCheck             on-demand and READY for `keep_alive_s` or longer -> STOPPED
    SetProvisioned, SetLimits  environments are started or stopped to fit
    Recycle                    READY -> STOPPED, busy ones are outdated; provisioned ones are replaced

Every event but Arrival may answer with `Adjust`: environments to start ahead of traffic, or to stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from coldframe.capacity.limits import CONCURRENCY, SCALING, SCALING_PERIOD

LATEST = "$LATEST"

# After this many init phases in a row without a success, provisioned environments are not replaced
# any more, until one of the version serves again. AWS does not publish its own number.
_MAX_INIT_FAILURES = 3


class EnvironmentState(StrEnum):
    """Where an execution environment is in its life; the module describes each state."""

    INIT = "INIT"
    READY = "READY"
    INVOKING = "INVOKING"
    STOPPED = "STOPPED"


class ThrottleReason(StrEnum):
    """`Reason` of Lambda's TooManyRequestsException.

    AWS names the reasons without saying which one the scaling rate has; of its six, the third here
    is the one about a rate of the function.
    Source: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html, read 2026-11.
    """

    RESERVED_CONCURRENCY = "ReservedFunctionConcurrentInvocationLimitExceeded"
    ACCOUNT_CONCURRENCY = "ConcurrentInvocationLimitExceeded"
    SCALING_RATE = "FunctionInvocationRateLimitExceeded"


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the environments of one function.

    keep_alive_s: an idle on-demand environment is stopped after this. AWS does not publish its own.
    reserved_concurrency: what the function may use, and nobody else; None when nothing is reserved.
    account_concurrency: what all functions together may use.
    scaling_burst, scaling_per_s: on-demand environments that may be started at once, and how fast
    that allowance comes back: continuously, and never to more than the burst.
    """

    keep_alive_s: float = 600.0
    reserved_concurrency: int | None = None
    account_concurrency: int = CONCURRENCY.value
    scaling_burst: int = SCALING.value
    scaling_per_s: float = SCALING.value / SCALING_PERIOD.value


@dataclass(frozen=True, slots=True)
class Arrival:
    """An invocation asks for an environment.

    claimed_by_others: concurrency that the account's other functions hold: see `claimed`.
    """

    version: str = LATEST
    claimed_by_others: int = 0


@dataclass(frozen=True, slots=True)
class Initialized:
    """The init phase of an environment is over; an invocation that waited for it starts."""

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


@dataclass(frozen=True, slots=True)
class SetProvisioned:
    """A version is to have this much provisioned concurrency; 0 for none. Failures are forgotten."""

    version: str
    target: int


@dataclass(frozen=True, slots=True)
class SetLimits:
    """The limits are these from now on."""

    limits: Limits


@dataclass(frozen=True, slots=True)
class Recycle:
    """The code has changed: no environment of before may serve another invocation."""


Event = Arrival | Initialized | Finished | Died | KeepAliveCheck | SetProvisioned | SetLimits | Recycle


@dataclass(frozen=True, slots=True)
class Lease:
    """The invocation gets this ready environment: a warm start.

    spillover: on demand, because every provisioned environment of the version was busy.
    """

    environment_id: int
    provisioned: bool = False
    spillover: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """The invocation gets this on-demand environment, which has to be started first: a cold start."""

    environment_id: int
    spillover: bool = False


@dataclass(frozen=True, slots=True)
class Throttle:
    """The invocation is refused."""

    reason: ThrottleReason


@dataclass(frozen=True, slots=True)
class Adjust:
    """Provisioned environments to be started, and environments to be stopped, longest idle first."""

    start: tuple[int, ...] = ()
    stop: tuple[int, ...] = ()


Decision = Lease | Start | Throttle | Adjust | None


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that is not stopped."""

    version: str
    provisioned: bool
    state: EnvironmentState


@dataclass(frozen=True, slots=True)
class Idle:
    """A ready on-demand environment and the moment at which it became ready."""

    environment_id: int
    since: float


@dataclass(frozen=True, slots=True)
class Provisioned:
    """Provisioned concurrency of one version.

    ready: most recently used last. failures: init phases that failed since one succeeded.
    """

    target: int = 0
    initializing: int = 0
    invoking: int = 0
    ready: tuple[int, ...] = ()
    failures: int = 0

    @property
    def allocated(self) -> int:
        """Environments that are initialised."""
        return self.invoking + len(self.ready)

    @property
    def environments(self) -> int:
        """Environments that are not stopped."""
        return self.allocated + self.initializing

    @property
    def failed(self) -> bool:
        """Whether its environments are no longer replaced, because they do not come up."""
        return self.failures >= _MAX_INIT_FAILURES


_NOTHING: Mapping[Any, Any] = MappingProxyType({})
_NO_PROVISIONED = Provisioned()


@dataclass(frozen=True, slots=True)
class State:
    """Every environment of one function.

    environments: by id, those that are not stopped.
    ready: idle on-demand ones by version, most recently used last, so that leases take from the end
    and expiry from the front.
    started: environments ever started, which is also the next environment's id.
    outdated_below: environments with a lower id run code of before a Recycle.
    scaled, scaled_at: on-demand starts that count against the scaling rate, as of that moment.
    """

    limits: Limits = Limits()
    environments: Mapping[int, Environment] = field(default_factory=lambda: _NOTHING)
    ready: Mapping[str, tuple[Idle, ...]] = field(default_factory=lambda: _NOTHING)
    provisioned: Mapping[str, Provisioned] = field(default_factory=lambda: _NOTHING)
    on_demand_in_flight: int = 0
    provisioned_in_flight: int = 0
    started: int = 0
    outdated_below: int = 0
    scaled: float = 0.0
    scaled_at: float = 0.0

    @property
    def in_flight(self) -> int:
        """Invocations admitted and not yet answered: Lambda's ConcurrentExecutions."""
        return self.on_demand_in_flight + self.provisioned_in_flight

    def state_of(self, environment_id: int) -> EnvironmentState:
        """The state of an environment that was started at some time.

        Raises ImpossibleEvent for an id that was never given out.
        """
        if not 0 <= environment_id < self.started:
            raise ImpossibleEvent(
                f"Environment {environment_id} was never started: ids run from 0 to {self.started - 1}. "
                "Send only ids that came with a Start, Lease or Adjust decision."
            )
        environment = self.environments.get(environment_id)
        return EnvironmentState.STOPPED if environment is None else environment.state


class ImpossibleEvent(ValueError):
    """An event that contradicts the state: a mistake of the caller, never of a request."""


def decide(state: State, event: Event, now: float) -> tuple[State, Decision]:
    """The state after `event`, and what the caller has to do about it.

    now: seconds on any clock that never runs backwards.
    Raises ImpossibleEvent when the event cannot happen in this state.
    """
    match event:
        case Arrival():
            return _admit(state, event, now)
        case Finished(environment_id):
            return _finished(state, environment_id, now)
        case KeepAliveCheck():
            return _stop_idle(state, now)
        case Initialized(environment_id):
            return _initialized(state, environment_id)
        case Died(environment_id):
            return _died(state, environment_id)
        case SetProvisioned(version, target):
            wanted = replace(state.provisioned.get(version, _NO_PROVISIONED), target=target, failures=0)
            return _adjust(_with_provisioned(state, version, wanted), version)
        case SetLimits(limits):
            return replace(state, limits=limits), None
        case Recycle():
            return _recycle(state)


def next_expiry(state: State) -> float | None:
    """When the longest idle environment is due to be stopped; None when none is idle."""
    oldest = [idle[0].since for idle in state.ready.values() if idle]
    return min(oldest) + state.limits.keep_alive_s if oldest else None


def claimed(state: State) -> int:
    """Concurrency of the account that this function takes from the others.

    What is reserved, or else what is provisioned, used or not, and what is used beyond it.
    Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html, read 2026-11.
    """
    reserved = state.limits.reserved_concurrency
    return _used(state) if reserved is None else reserved


# An invocation arrives.


def _admit(state: State, arrival: Arrival, now: float) -> tuple[State, Decision]:
    """Rules in order of priority:

    1. A limit on invocations in flight is reached: throttle. First, because a limit
       lowered at run time holds even while idle environments are left.
    2. A provisioned environment of the version is ready: lease it.
    3. Provisioned concurrency leaves nothing of the limit to on-demand environments: throttle.
       It is set aside even while it is idle.
    4. An on-demand environment of the version is ready: lease the most recently used one, so that
       a quiet function shrinks to the environments it needs and the rest expire.
    5. Environments were started faster than the scaling rate: throttle.
    6. Otherwise start a new one.
    """
    version = arrival.version
    provisioned = state.provisioned.get(version, _NO_PROVISIONED)
    reason = _exceeded_limit(state.limits, state.in_flight, 0)
    if reason is None and provisioned.ready:
        return _lease_provisioned(state, version, provisioned)
    reason = reason or _exceeded_limit(state.limits, _used(state), arrival.claimed_by_others)
    if reason is not None:
        return state, Throttle(reason)
    spillover = provisioned.allocated > 0
    if state.ready.get(version):
        return _lease_on_demand(state, version, spillover)
    return _start_on_demand(state, version, spillover, now)


def _exceeded_limit(limits: Limits, used: int, claimed_by_others: int) -> ThrottleReason | None:
    reserved = limits.reserved_concurrency
    if reserved is not None and used >= reserved:
        return ThrottleReason.RESERVED_CONCURRENCY
    # A reservation is the function's own: what others use is no concern of it.
    elsewhere = claimed_by_others if reserved is None else 0
    if used + elsewhere >= limits.account_concurrency:
        return ThrottleReason.ACCOUNT_CONCURRENCY
    return None


def _used(state: State) -> int:
    """Concurrency in use on demand, and all that is provisioned, even if more is still in use."""
    used = state.on_demand_in_flight
    for provisioned in state.provisioned.values():
        used += max(provisioned.target, provisioned.invoking)
    return used


def _lease_provisioned(state: State, version: str, provisioned: Provisioned) -> tuple[State, Decision]:
    leased = provisioned.ready[-1]
    busy = replace(provisioned, ready=provisioned.ready[:-1], invoking=provisioned.invoking + 1)
    state = replace(
        state,
        environments=_moved(state, leased, EnvironmentState.INVOKING),
        provisioned={**state.provisioned, version: busy},
        provisioned_in_flight=state.provisioned_in_flight + 1,
    )
    return state, Lease(leased, provisioned=True)


def _lease_on_demand(state: State, version: str, spillover: bool) -> tuple[State, Decision]:
    *_, idle = ready = state.ready[version]
    state = replace(
        state,
        environments=_moved(state, idle.environment_id, EnvironmentState.INVOKING),
        ready={**state.ready, version: ready[:-1]},
        on_demand_in_flight=state.on_demand_in_flight + 1,
    )
    return state, Lease(idle.environment_id, spillover=spillover)


def _start_on_demand(state: State, version: str, spillover: bool, now: float) -> tuple[State, Decision]:
    limits = state.limits
    scaled = max(0.0, state.scaled - (now - state.scaled_at) * limits.scaling_per_s) + 1
    if scaled > limits.scaling_burst:
        return state, Throttle(ThrottleReason.SCALING_RATE)
    new = state.started
    started = Environment(version, False, EnvironmentState.INIT)
    state = replace(
        state,
        environments={**state.environments, new: started},
        on_demand_in_flight=state.on_demand_in_flight + 1,
        started=new + 1,
        scaled=scaled,
        scaled_at=now,
    )
    return state, Start(new, spillover)


# An environment reports.


def _initialized(state: State, environment_id: int) -> tuple[State, Decision]:
    environment = _expect(state, environment_id, EnvironmentState.INIT)
    if not environment.provisioned:
        return replace(state, environments=_moved(state, environment_id, EnvironmentState.INVOKING)), None
    version = environment.version
    of_version = state.provisioned[version]
    up = replace(
        of_version,
        initializing=of_version.initializing - 1,
        ready=(*of_version.ready, environment_id),
        failures=0,
    )
    moved = _moved(state, environment_id, EnvironmentState.READY)
    state = replace(state, environments=moved, provisioned={**state.provisioned, version: up})
    return _adjust(state, version)  # one came up after all: those that were given up are tried again


def _finished(state: State, environment_id: int, now: float) -> tuple[State, Decision]:
    environment = _expect(state, environment_id, EnvironmentState.INVOKING)
    version = environment.version
    outdated = environment_id < state.outdated_below
    if environment.provisioned:
        of_version = state.provisioned[version]
        if outdated or of_version.environments > of_version.target:
            return _adjust(_without(state, environment_id), version, (environment_id,))
        idle = replace(
            of_version, invoking=of_version.invoking - 1, ready=(*of_version.ready, environment_id)
        )
        return replace(
            state,
            environments=_moved(state, environment_id, EnvironmentState.READY),
            provisioned={**state.provisioned, version: idle},
            provisioned_in_flight=state.provisioned_in_flight - 1,
        ), None
    if outdated:
        return _without(state, environment_id), Adjust(stop=(environment_id,))
    ready = (*state.ready.get(version, ()), Idle(environment_id, now))
    state = replace(
        state,
        environments=_moved(state, environment_id, EnvironmentState.READY),
        ready={**state.ready, version: ready},
        on_demand_in_flight=state.on_demand_in_flight - 1,
    )
    given_up = state.provisioned.get(version)
    if given_up is None or not given_up.failed:
        return state, None
    # The function does come up, on demand: worth one more attempt.
    once_more = replace(given_up, failures=_MAX_INIT_FAILURES - 1)
    return _adjust(_with_provisioned(state, version, once_more), version)


def _died(state: State, environment_id: int) -> tuple[State, Decision]:
    """Also for an environment that is stopped already: it may die while it is being stopped."""
    if state.state_of(environment_id) is EnvironmentState.STOPPED:
        return state, None
    environment = state.environments[environment_id]
    state = _without(state, environment_id)
    if not environment.provisioned:
        return state, None
    version = environment.version
    if environment.state is EnvironmentState.INIT:
        of_version = state.provisioned[version]
        failing = replace(of_version, failures=of_version.failures + 1)
        state = _with_provisioned(state, version, failing)
    return _adjust(state, version)


def _stop_idle(state: State, now: float) -> tuple[State, Decision]:
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
        state = _without(state, environment_id)
    return state, Adjust(stop=stopped)


# Environments are made to fit.


def _recycle(state: State) -> tuple[State, Decision]:
    """Stops what is idle, and provisioned environments that still load the code of before."""
    stopped = tuple(
        environment_id
        for environment_id, environment in state.environments.items()
        if environment.state is EnvironmentState.READY
        or (environment.provisioned and environment.state is EnvironmentState.INIT)
    )
    for environment_id in stopped:
        state = _without(state, environment_id)
    state = replace(state, outdated_below=state.started)
    started: tuple[int, ...] = ()
    for version, provisioned in state.provisioned.items():
        state = _with_provisioned(state, version, replace(provisioned, failures=0))
        state, decision = _adjust(state, version)
        started += decision.start if decision is not None else ()
    return state, (Adjust(started, stopped) if started or stopped else None)


def _adjust(state: State, version: str, stopped: tuple[int, ...] = ()) -> tuple[State, Adjust | None]:
    """Starts what is missing of a version's provisioned environments, or stops what is too much.

    Idle ones are stopped first, then those that still load; busy ones when they finish.
    stopped: what the caller has stopped already, for the decision.
    """
    provisioned = state.provisioned[version]
    surplus = provisioned.environments - provisioned.target
    if surplus > 0:
        superfluous = (*provisioned.ready, *_initializing(state, version))[:surplus]
        for environment_id in superfluous:
            state = _without(state, environment_id)
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
    return _with_provisioned(state, version, more)


def _initializing(state: State, version: str) -> list[int]:
    """Provisioned environments of a version that still load, youngest first."""
    loading = Environment(version, True, EnvironmentState.INIT)
    return [i for i, environment in state.environments.items() if environment == loading][::-1]


# Copies of the state.


def _with_provisioned(state: State, version: str, provisioned: Provisioned) -> State:
    return replace(state, provisioned={**state.provisioned, version: provisioned})


def _moved(state: State, environment_id: int, to: EnvironmentState) -> dict[int, Environment]:
    before = state.environments[environment_id]
    return {**state.environments, environment_id: Environment(before.version, before.provisioned, to)}


def _without(state: State, environment_id: int) -> State:
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
    return _with_provisioned(state, version, less)


def _expect(state: State, environment_id: int, expected: EnvironmentState) -> Environment:
    environment = state.environments.get(environment_id)
    if environment is None or environment.state is not expected:
        raise ImpossibleEvent(
            f"Environment {environment_id} is {state.state_of(environment_id)}, expected {expected}. "
            "Send Initialized once after Start or Adjust, and Finished once after Initialized or Lease."
        )
    return environment
