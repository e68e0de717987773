"""State of the admission rules: limits, and every environment of one function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from coldframe.capacity.limits import (
    ALLOCATION,
    CONCURRENCY,
    MAX_AGE,
    REQUEST_RATE,
    REQUEST_SCALING,
    SCALING,
    SCALING_PERIOD,
)

LATEST = "$LATEST"

# After this many failed init phases in a row, provisioned environments are no longer replaced until an
# environment of the version serves again. AWS does not publish its own number.
MAX_INIT_FAILURES = 3


class EnvironmentState(StrEnum):
    """Stage in the life of an execution environment; `admission` describes each state."""

    INIT = "INIT"
    READY = "READY"
    INVOKING = "INVOKING"
    STOPPED = "STOPPED"


class ThrottleReason(StrEnum):
    """`Reason` of Lambda's TooManyRequestsException.

    AWS names six reasons without saying which rule has which. INVOCATION_RATE stands for a rate of a function
    without a reservation: of environments started, and of requests. CallerRateLimitExceeded sounds alike, but
    is assumed to be about API calls of one caller.
    Source: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html, read 2026-11.
    """

    RESERVED_CONCURRENCY = "ReservedFunctionConcurrentInvocationLimitExceeded"
    ACCOUNT_CONCURRENCY = "ConcurrentInvocationLimitExceeded"
    INVOCATION_RATE = "FunctionInvocationRateLimitExceeded"
    RESERVED_REQUEST_RATE = "ReservedFunctionInvocationRateLimitExceeded"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the environments of one function.

    keep_alive_s: an idle on-demand environment is stopped after this. AWS does not publish its own; a caller
    may draw another time for each environment (`Finished`).
    max_age_s: an on-demand environment is stopped at this age, once it is idle. None switches the rule off.
    AWS says "every few hours", "even for functions that are invoked continuously".
    reserved_concurrency: concurrency that only this function may use; None without a reservation.
    account_concurrency: concurrency of all functions together.
    machine_environments: most environments of a function without a reservation; protects a developer's
    machine.
    AWS has no such limit. Provisioned concurrency may exceed it. None: the account's limit alone.
    scaling_burst, scaling_per_s: on-demand environments that may be started at once, and the rate at which
    this allowance is refilled: continuously, and never above the burst. None switches the rule off.
    request_growth: synchronous requests per second by which the function's rate may grow at once. The
    allowance is refilled within ten seconds. AWS writes "1,000 execution environment instances every 10
    seconds (or 10,000 requests per second every 10 seconds)". A rate that the function has reached before is
    assumed to need no allowance. None switches the rule off.
    requests_per_environment_s: synchronous invocations of each second, times the reservation, or times the
    account's concurrency for all functions without one. None switches the rule off. AWS does not publish
    how it measures; here the count starts at zero in each second of the caller's clock. Its further rule of
    10
    requests per second and provisioned environment is left out: AWS does not say what happens to the excess.
    allocation_burst, allocation_per_s: provisioned environments that are allocated at once, and per second
    after that; None switches the rule off. AWS gives 6,000 a minute; an even rate is an assumption.
    allocation_delay_s: time from setting a level of provisioned concurrency to its first allocation. AWS says
    "a minute or two", `ALLOCATION_DELAY` in simulations; 0 in the emulator, whose user does not wait.
    Source: https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html,
    https://docs.aws.amazon.com/lambda/latest/dg/provisioned-concurrency.html,
    https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html and
    https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html#api-requests ("the total
    invocation limit is 10 times your concurrency limit"), read 2026-11-21.
    """

    keep_alive_s: float = 600.0
    max_age_s: float | None = MAX_AGE.value
    reserved_concurrency: int | None = None
    account_concurrency: int = CONCURRENCY.value
    machine_environments: int | None = None
    scaling_burst: int = SCALING.value
    scaling_per_s: float | None = SCALING.value / SCALING_PERIOD.value
    request_growth: int | None = REQUEST_SCALING.value
    requests_per_environment_s: float | None = REQUEST_RATE.value
    allocation_burst: int = ALLOCATION.value // 60
    allocation_per_s: float | None = ALLOCATION.value / 60
    allocation_delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that is not stopped.

    started_at: when its init phase may begin; the allocation rate may delay a provisioned one.
    """

    version: str
    provisioned: bool
    state: EnvironmentState
    started_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Idle:
    """A ready on-demand environment, with the moment it became ready and the moment to stop it."""

    environment_id: int
    since: float
    until: float


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
        """Whether its environments are no longer replaced, because their init phases fail."""
        return self.failures >= MAX_INIT_FAILURES


_NOTHING: Mapping[Any, Any] = MappingProxyType({})
NO_PROVISIONED = Provisioned()


@dataclass(frozen=True, slots=True)
class State:
    """Every environment of one function.

    environments: environments that are not stopped, by id.
    ready: idle on-demand environments by version, most recently used last: leases take from the end.
    idle_until: before this moment no idle environment is due to be stopped.
    started: environments ever started, which is also the next environment's id.
    outdated_below: environments with a lower id run code from before a Recycle.
    scaled, scaled_at: on-demand starts that count against the scaling rate, and the moment of that count.
    second, requests: synchronous invocations admitted in the latest second with any.
    grown_to: the most requests in any second. grown, grown_at: growth that counts, and the moment of that
    count.
    allocated, allocated_at: provisioned environments that count against the allocation rate, and the moment.
    snapstart: versions whose environments start from a snapshot.
    crashed: by SnapStart version, environments lost in an invocation that have had no successor yet.
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
    second: int = 0
    requests: int = 0
    grown_to: int = 0
    grown: float = 0.0
    grown_at: float = 0.0
    idle_until: float = math.inf
    allocated: float = 0.0
    allocated_at: float = 0.0
    snapstart: frozenset[str] = frozenset()
    crashed: Mapping[str, int] = field(default_factory=lambda: _NOTHING)

    @property
    def in_flight(self) -> int:
        """Invocations admitted and not yet answered: Lambda's ConcurrentExecutions."""
        return self.on_demand_in_flight + self.provisioned_in_flight

    def state_of(self, environment_id: int) -> EnvironmentState:
        """The state of an environment that was started at some time.

        Raises ImpossibleEvent for an unknown id.
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
