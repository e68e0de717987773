"""Events of a function's environments, and decisions of the admission rules about them."""

from __future__ import annotations

from dataclasses import dataclass

from coldframe.capacity.states import LATEST, Limits, ThrottleReason


@dataclass(frozen=True, slots=True)
class Arrival:
    """An invocation requests an environment.

    claimed_by_others: concurrency that the account's other functions hold: see `claimed`.
    requested_by_others: requests of this second that other functions count: see `requested`.
    synchronous: a caller waits for the result; events from a queue have no request rate.
    """

    version: str = LATEST
    claimed_by_others: int = 0
    requested_by_others: int = 0
    synchronous: bool = True


@dataclass(frozen=True, slots=True)
class Initialized:
    """The init phase of an environment is over; an invocation that waited for it starts."""

    environment_id: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The invocation of an environment is answered, and the environment requests the next.

    keep_alive_s: idle time of this environment, if the caller drew it (`idle_expiry`); None: the limits'
    time.
    Ignored for provisioned environments.
    """

    environment_id: int
    keep_alive_s: float | None = None


@dataclass(frozen=True, slots=True)
class Died:
    """An environment has ended (crash, timeout, failed init), and its invocation with it."""

    environment_id: int


@dataclass(frozen=True, slots=True)
class KeepAliveCheck:
    """Time has passed: environments past their idle time or their maximum age are to be stopped."""


@dataclass(frozen=True, slots=True)
class SetProvisioned:
    """Sets the provisioned concurrency of a version; 0 for none. Failures are forgotten.

    delayed: allocation begins after the limits' delay. A level set before the first event has no delay.
    """

    version: str
    target: int
    delayed: bool = True


@dataclass(frozen=True, slots=True)
class SetSnapStart:
    """From now on, environments of a version start from a snapshot, or do so no longer."""

    version: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class SetLimits:
    """From now on, these limits hold."""

    limits: Limits


@dataclass(frozen=True, slots=True)
class Recycle:
    """The function's code has changed. Environments started with the old code must not serve new
    invocations.
    """


Event = (
    Arrival
    | Initialized
    | Finished
    | Died
    | KeepAliveCheck
    | SetProvisioned
    | SetSnapStart
    | SetLimits
    | Recycle
)


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
    """The invocation gets this on-demand environment, which has to be started first: a cold start.

    restored: the environment starts from the version's snapshot, instead of by an init phase.
    """

    environment_id: int
    spillover: bool = False
    restored: bool = False


@dataclass(frozen=True, slots=True)
class Throttle:
    """The invocation is refused."""

    reason: ThrottleReason


@dataclass(frozen=True, slots=True)
class Adjust:
    """Provisioned environments to start, and environments to stop, longest idle first.

    `Environment.started_at` says when the init phase of an environment to start may begin.
    """

    start: tuple[int, ...] = ()
    stop: tuple[int, ...] = ()


Decision = Lease | Start | Throttle | Adjust | None
