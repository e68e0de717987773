"""What happens to the environments of a function, and what the admission rules decide about it."""

from __future__ import annotations

from dataclasses import dataclass

from coldframe.capacity.states import LATEST, Limits, ThrottleReason


@dataclass(frozen=True, slots=True)
class Arrival:
    """An invocation asks for an environment.

    claimed_by_others: concurrency that the account's other functions hold: see `claimed`.
    requested_by_others: requests of this second that they count: see `requested`.
    synchronous: somebody waits for the result; events from a queue have no request rate.
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
    """The invocation of an environment is answered, and the environment asks for more.

    keep_alive_s: how long this environment is kept idle, when the caller drew it (`idle_expiry`); None: as
    long as the limits say. Of no meaning for provisioned environments.
    """

    environment_id: int
    keep_alive_s: float | None = None


@dataclass(frozen=True, slots=True)
class Died:
    """An environment is gone (crash, timeout, failed init), and its invocation with it."""

    environment_id: int


@dataclass(frozen=True, slots=True)
class KeepAliveCheck:
    """Time has passed: environments that were idle for too long, or are too old, are to be stopped."""


@dataclass(frozen=True, slots=True)
class SetProvisioned:
    """A version is to have this much provisioned concurrency; 0 for none. Failures are forgotten.

    delayed: allocation begins after the limits' delay. A level of before the first event is not.
    """

    version: str
    target: int
    delayed: bool = True


@dataclass(frozen=True, slots=True)
class SetSnapStart:
    """Environments of a version are started from a snapshot from now on, or are not any more."""

    version: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class SetLimits:
    """The limits are these from now on."""

    limits: Limits


@dataclass(frozen=True, slots=True)
class Recycle:
    """The code has changed: no environment of before may serve another invocation."""


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

    restored: from the version's snapshot, instead of by an init phase.
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
    """Provisioned environments to be started, and environments to be stopped, longest idle first.

    `Environment.started_at` tells of each environment to be started when its init phase may begin.
    """

    start: tuple[int, ...] = ()
    stop: tuple[int, ...] = ()


Decision = Lease | Start | Throttle | Adjust | None
