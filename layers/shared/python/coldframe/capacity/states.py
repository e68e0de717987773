"""What the admission rules know: limits, and the state of every environment of one function."""

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

# After this many init phases in a row without a success, provisioned environments are not replaced
# any more, until one of the version serves again. AWS does not publish its own number.
MAX_INIT_FAILURES = 3


class EnvironmentState(StrEnum):
    """Where an execution environment is in its life; `admission` describes each state."""

    INIT = "INIT"
    READY = "READY"
    INVOKING = "INVOKING"
    STOPPED = "STOPPED"


class ThrottleReason(StrEnum):
    """`Reason` of Lambda's TooManyRequestsException.

    AWS names six reasons without saying which rule has which. INVOCATION_RATE is the one about a rate of
    a function without a reservation: of environments started, and of requests. CallerRateLimitExceeded,
    which sounds alike, is left out: it is taken to be about calls of the API by one caller.
    Source: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html, read 2026-11.
    """

    RESERVED_CONCURRENCY = "ReservedFunctionConcurrentInvocationLimitExceeded"
    ACCOUNT_CONCURRENCY = "ConcurrentInvocationLimitExceeded"
    INVOCATION_RATE = "FunctionInvocationRateLimitExceeded"
    RESERVED_REQUEST_RATE = "ReservedFunctionInvocationRateLimitExceeded"


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the environments of one function.

    keep_alive_s: an idle on-demand environment is stopped after this. AWS does not publish its own; a caller
    may draw another time for each environment (`Finished`).
    max_age_s: an on-demand environment is stopped at this age, once it is idle. None switches the rule off.
    AWS says "every few hours", "even for functions that are invoked continuously".
    reserved_concurrency: what the function may use, and nobody else; None when nothing is reserved.
    account_concurrency: what all functions together may use.
    machine_environments: no limit of AWS's: what a developer's machine is to bear of a function without a
    reservation; its provisioned concurrency, if more, is borne. None: what the account has.
    scaling_burst, scaling_per_s: on-demand environments that may be started at once, and how fast
    that allowance comes back: continuously, and never to more than the burst. None switches the rule off.
    request_growth: by so many synchronous requests a second the function's rate may grow at once; the
    allowance comes back within ten seconds. AWS writes "1,000 execution environment instances every 10
    seconds (or 10,000 requests per second every 10 seconds)". A rate that the function has once grown to
    needs no allowance again: that is assumed. None switches the rule off.
    requests_per_environment_s: synchronous invocations of each second, times the reservation, or times the
    account's concurrency for all functions without one. None switches the rule off. AWS does not publish
    how it measures; here each second of the caller's clock starts anew. Its further rule of 10 requests per
    second and provisioned environment is left out, because AWS does not say what becomes of the excess.
    allocation_burst, allocation_per_s: provisioned environments that are allocated at once, and how many in
    each second after that; None switches the rule off. AWS gives 6,000 a minute; that they come evenly is an
    assumption.
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

    started_at: when its init phase may begin; for a provisioned one the allocation rate may put it off.
    """

    version: str
    provisioned: bool
    state: EnvironmentState
    started_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Idle:
    """A ready on-demand environment, and the moments at which it became ready and is to be stopped."""

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
        """Whether its environments are no longer replaced, because they do not come up."""
        return self.failures >= MAX_INIT_FAILURES


_NOTHING: Mapping[Any, Any] = MappingProxyType({})
NO_PROVISIONED = Provisioned()


@dataclass(frozen=True, slots=True)
class State:
    """Every environment of one function.

    environments: by id, those that are not stopped.
    ready: idle on-demand ones by version, most recently used last: leases take from the end.
    idle_until: no idle environment is to be stopped before this.
    started: environments ever started, which is also the next environment's id.
    outdated_below: environments with a lower id run code of before a Recycle.
    scaled, scaled_at: on-demand starts that count against the scaling rate, as of that moment.
    second, requests: the synchronous invocations that were admitted in that second, the latest with any.
    grown_to: the most of them in any second. grown, grown_at: what of the growth counts, as of that moment.
    allocated, allocated_at: provisioned environments that count against the allocation rate, as of then.
    snapstart: versions whose environments start from a snapshot.
    crashed: by version of these, environments that were lost in an invocation and have had no successor yet.
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
