"""Types of the emulated Lambda service: its errors, results and views."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

from coldframe.capacity.admission import LATEST as LATEST
from coldframe.capacity.admission import EnvironmentState, Throttle
from coldframe.errors import ColdframeError
from coldframe_local.emulator.lambda_service.report import Outcome
from coldframe_local.emulator.lambda_service.request_stages import RequestStages, request_stages


class LambdaException(ColdframeError):
    """An error of the Lambda API. The class has AWS's name for it, `status` its HTTP status.

    Source: https://docs.aws.amazon.com/lambda/latest/api/API_Operations.html, read 2026-11.
    """

    status = HTTPStatus.BAD_REQUEST


class InvalidParameterValueException(LambdaException):
    """A value that Lambda refuses."""


class ResourceNotFoundException(LambdaException):
    """No such function, version or alias."""

    status = HTTPStatus.NOT_FOUND


class ResourceConflictException(LambdaException):
    """Something of that name is there already."""

    status = HTTPStatus.CONFLICT


class ProvisionedConcurrencyConfigNotFoundException(LambdaException):
    """The alias or version has no provisioned concurrency."""

    status = HTTPStatus.NOT_FOUND


class ProvisionedConcurrencyStatus(StrEnum):
    """How far the allocation of provisioned concurrency is."""

    IN_PROGRESS = "IN_PROGRESS"
    READY = "READY"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class ProvisionedConcurrencyConfig:
    """Provisioned concurrency of an alias or version.

    allocated: environments that are initialised; available: those of them that are healthy, which
    here is the same. last_modified: ISO 8601. status_reason: why it failed, else "".
    """

    function: str
    qualifier: str
    version: str
    requested: int
    allocated: int
    available: int
    status: ProvisionedConcurrencyStatus
    status_reason: str
    last_modified: str


@dataclass(frozen=True, slots=True)
class AccountSettings:
    """The account's concurrency, and what of it no function has reserved."""

    concurrent_executions: int
    unreserved_concurrent_executions: int
    functions: int


@dataclass(frozen=True, slots=True)
class Invoked:
    """The end of an admitted invocation: what REPORT says of it, and where it ran.

    duration_ms, memory_size_mb, max_memory_mb, init_ms: as REPORT has them.
    init_ms: of the init phase that it waited for; None on a warm start, in a provisioned environment,
    and when the init phase was run again inside the invocation: then it is part of the duration.
    restore_ms, billed_restore_ms: where it waited for a restore from a snapshot instead: all of it, and
    the part that the runtime and the function's hooks took.
    log_tail: the last 4 KB of its log lines, START to REPORT, UTF-8.
    cold: it waited for an environment of its own.
    spillover: served on demand, because all provisioned environments were busy.
    """

    outcome: Outcome
    request_id: str = ""
    duration_ms: float = 0.0
    init_ms: float | None = None
    restore_ms: float | None = None
    billed_restore_ms: int = 0
    memory_size_mb: int = 0
    max_memory_mb: int = 0
    log_tail: bytes = b""
    executed_version: str = LATEST
    cold: bool = False
    provisioned: bool = False
    spillover: bool = False
    environment_id: int | None = None

    @property
    def billed_ms(self) -> int:
        """The duration, with the init phase or what is billed of the restore, in whole milliseconds."""
        return math.ceil(self.duration_ms + (self.init_ms or 0.0) + self.billed_restore_ms)


@dataclass(frozen=True, slots=True)
class InvocationView:
    """One invocation that has ended, or was refused, as those see it who watch.

    number: counts the account's invocations in the order in which they ended, from 1.
    status: an `InvocationStatus`, or "throttled"; then reason says why, in AWS's word.
    latency_ms: from arrival to answer: init_ms or restore_ms, duration_ms, the wait for a core to load on,
    and what the emulator itself took.
    request: the function's own times, where its log line has them.
    """

    number: int
    function: str
    status: str
    reason: str = ""
    environment_id: int | None = None
    cold: bool = False
    provisioned: bool = False
    spillover: bool = False
    latency_ms: float = 0.0
    init_ms: float | None = None
    restore_ms: float | None = None
    duration_ms: float = 0.0
    billed_ms: int = 0
    request: RequestStages | None = None

    @classmethod
    def of(cls, number: int, function: str, ended: Invoked | Throttle, latency_ms: float) -> InvocationView:
        """View of an invocation. function: its name."""
        if isinstance(ended, Throttle):
            return cls(number, function, "throttled", ended.reason)
        same = {name: getattr(ended, name) for name in _SEEN}
        same["request"] = request_stages(ended.log_tail)
        return cls(
            number, function, ended.outcome.status, ended.outcome.error_type, latency_ms=latency_ms, **same
        )


# What is seen of an invocation as it is.
_SEEN = (
    "environment_id", "cold", "provisioned", "spillover", "init_ms", "restore_ms", "duration_ms", "billed_ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EnvironmentView:
    """One execution environment at this moment.

    age_s: since it was started. invocation_age_s: of the invocation that it works on; None when idle.
    memory_mb: the most that it has held.
    """

    function: str
    version: str
    id: int
    pid: int | None
    state: EnvironmentState
    provisioned: bool
    age_s: float
    invocations: int
    invocation_age_s: float | None
    memory_mb: int


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Quantiles of the latest thousand values. count: number of values; all fields are 0 without any."""

    p50: float
    p95: float
    p99: float
    count: int = 0


@dataclass(frozen=True, slots=True)
class FunctionView:
    """The counters of a function since the start, and its rates over the last ten seconds.

    reserved_concurrency: None where nothing is reserved. machine_environments: then the most environments
    that this machine is to bear of the function, which AWS does not know of; None: what the account has.
    arrivals: invocations asked for: admitted and throttled ones. invocations: admitted and finished.
    latency_ms: from arrival to answer, cold starts included. duration_ms: as REPORT lines have it.
    """

    name: str
    memory_size_mb: int
    timeout_s: float
    reserved_concurrency: int | None
    machine_environments: int | None
    aliases: tuple[str, ...]
    provisioned: tuple[ProvisionedConcurrencyConfig, ...]
    concurrent_executions: int
    most_concurrent_executions: int
    arrivals: int
    invocations: int
    errors: int
    throttles: int
    cold_starts: int
    provisioned_invocations: int
    spillover_invocations: int
    provisioned_utilization: float
    arrivals_per_s: float
    throttles_per_s: float
    latency_ms: Percentiles
    duration_ms: Percentiles
    init_ms: Percentiles
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that is to be seen of the account at one moment. revision: grows with every change."""

    revision: int
    uptime_s: float
    account: AccountSettings
    functions: tuple[FunctionView, ...]
    environments: tuple[EnvironmentView, ...]
