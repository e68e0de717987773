"""The emulated Lambda service of one account: what the doors (HTTP, Lambda API, console) stand on."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType

from coldframe.capacity import admission as concurrency
from coldframe.capacity.admission import LATEST, Limits, Provisioned, Throttle
from coldframe.capacity.limits import CONCURRENCY, MEMORY, MIN_MEMORY, UNRESERVED
from coldframe.capacity.prices import PRICES, Bill
from coldframe.timing import Clock
from local.lambda_service.cpu import can_limit_cpu, vcpus
from local.lambda_service.destinations import EventInvokeConfig
from local.lambda_service.lambda_types import (
    LIVE,
    AccountSettings,
    InvalidParameterValueException,
    InvocationView,
    Invoked,
    ProvisionedConcurrencyConfig,
    ProvisionedConcurrencyConfigNotFoundException,
    ProvisionedConcurrencyStatus,
    ResourceConflictException,
    ResourceNotFoundException,
    Snapshot,
)
from local.lambda_service.latest_invocations import LatestInvocations
from local.lambda_service.metrics import FunctionMetrics
from local.lambda_service.pool import EnvironmentPool, PoolClosed
from local.lambda_service.process import FunctionSettings, Log, die_with_parent
from local.lambda_service.report import InvocationStatus, Outcome
from local.lambda_service.views import environment_view, function_view

_MEMORY_MB = range(MIN_MEMORY.value, MEMORY.value + 1)
_NO_PROVISIONED = Provisioned()
_DEFAULT_EVENT_INVOKE_CONFIG = EventInvokeConfig()


@dataclass
class _Provisioning:
    """Provisioned concurrency that was asked for, by the qualifier that was named."""

    requested: int
    last_modified: str


@dataclass
class _Function:
    """What the service keeps of a function. versions: with `$LATEST`, by number, oldest first."""

    settings: FunctionSettings
    pool: EnvironmentPool
    metrics: FunctionMetrics
    versions: dict[str, FunctionSettings]
    aliases: dict[str, str]
    reserved: int | None = None
    provisioned: dict[str, _Provisioning] = field(default_factory=dict)
    event_invoke_configs: dict[str, EventInvokeConfig] = field(default_factory=dict)
    arns: dict[str | None, tuple[str, str]] = field(default_factory=dict)


class LambdaService:
    """Functions by name, each with versions, the alias `live`, and execution environments.

    All methods run in the event loop's thread; those that are not `async` return at once.
    Errors are `LambdaException`s. qualifier: a version, an alias, or None for `$LATEST`.
    clock: seconds, for keep-alive, rates and cost; a test may turn it forward.
    """

    def __init__(
        self,
        log: Log,
        *,
        account_concurrency: int = CONCURRENCY.value,
        keep_alive_s: float = 600.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self._log = log
        self._limits = Limits(keep_alive_s=keep_alive_s, account_concurrency=account_concurrency)
        self._clock = clock
        self._started_at = clock()
        self._functions: dict[str, _Function] = {}
        self._latest = LatestInvocations()
        self._revision = 0
        self._change: asyncio.Future[None] | None = None

    async def __aenter__(self) -> LambdaService:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops every environment and waits until no process is left. Callers get a crash."""
        await asyncio.gather(*(function.pool.close() for function in self._functions.values()))

    # Functions.

    def create_function(self, function: FunctionSettings) -> None:
        """Adds a function: `$LATEST`, version 1, and the alias `live` that points to it.

        Raises ResourceConflictException, InvalidParameterValueException.
        """
        if function.name in self._functions:
            raise ResourceConflictException(f"Function already exist: {function.name}")
        _check(function)
        self._say_what_cpu_is_missing(function)
        pool = EnvironmentPool(
            function,
            self._limits,
            self._log,
            on_change=lambda: self._pool_changed(metrics),
            on_provisioned=lambda init_ms: metrics.provisioned_initialized(init_ms, function.memory_mb),
            clock=self._clock,
        )
        bill = Bill(function.architecture, self._clock())
        metrics = FunctionMetrics(function.name, lambda: pool.state, bill)
        latest = replace(function, version=LATEST)
        self._functions[function.name] = _Function(latest, pool, metrics, {LATEST: latest}, {})
        self.put_alias(function.name, LIVE, self.publish_version(function.name))

    def list_functions(self) -> tuple[str, ...]:
        """Names, in the order of creation."""
        return tuple(self._functions)

    def get_function(self, name: str, qualifier: str | None = None) -> FunctionSettings:
        """The function as a version has it, `.version` resolved. Raises ResourceNotFoundException."""
        function = self._function(name)
        return function.versions[self._resolve(function, qualifier)[0]]

    def publish_version(self, name: str) -> str:
        """A new version of what `$LATEST` is; its number."""
        function = self._function(name)
        version = str(len(function.versions))
        function.versions[version] = replace(function.settings, version=version)
        self._changed()
        return version

    def list_versions(self, name: str) -> tuple[str, ...]:
        """`$LATEST` first, then the published ones, oldest first."""
        return tuple(self._function(name).versions)

    def put_alias(self, name: str, alias: str, version: str) -> None:
        """Lets an alias point to a published version. Its provisioned concurrency moves along."""
        function = self._function(name)
        if version == LATEST or version not in function.versions:
            raise ResourceNotFoundException(f"Function not found: {function.settings.arn(version)}")
        before = function.aliases.get(alias)
        function.aliases[alias] = version
        function.arns.clear()
        if alias in function.provisioned and before is not None and before != version:
            self._provision(function, before)
            self._provision(function, version)
        self._changed()

    def list_aliases(self, name: str) -> dict[str, str]:
        """Alias to version."""
        return dict(self._function(name).aliases)

    def arn(self, name: str, qualifier: str | None = None) -> str:
        """The ARN by which a function, a version or an alias is called."""
        return self._function(name).settings.arn(qualifier)

    # Invocations.

    async def invoke(self, name: str, qualifier: str | None, event: bytes) -> Invoked | Throttle:
        """One synchronous invocation. event: JSON. Raises ResourceNotFoundException."""
        function = self._function(name)
        version, arn = self._resolve(function, qualifier)
        metrics, started_s = function.metrics, time.perf_counter()
        metrics.arrived(self._clock())
        invocation = function.pool.invoke(version, arn, event, self._claimed_by_others(function))
        try:
            result = await invocation
        except PoolClosed:
            return _crash(version)
        if isinstance(result, Throttle):
            metrics.throttled(self._clock())
            self._latest.throttled(name, result)
        else:
            latency_ms = (time.perf_counter() - started_s) * 1000
            metrics.invoked(result, function.settings.memory_mb, latency_ms)
            self._latest.ended(name, result, latency_ms)
        self._changed()
        return result

    # Concurrency.

    def put_provisioned_concurrency(
        self, name: str, qualifier: str, requested: int
    ) -> ProvisionedConcurrencyConfig:
        """Starts to initialise environments ahead of traffic, or stops some.

        Raises InvalidParameterValueException for `$LATEST`, for less than 1, and for more than the
        reserved or unreserved concurrency leaves.
        """
        function = self._function(name)
        version, _ = self._resolve(function, qualifier)
        if version == LATEST:
            raise InvalidParameterValueException(
                "Provisioned Concurrency Configs cannot be applied to unpublished function versions. "
                "Name an alias or a version."
            )
        if requested < 1:
            raise InvalidParameterValueException(
                f"ProvisionedConcurrentExecutions is {requested}, expected at least 1. "
                "Delete the configuration to have none."
            )
        self._check_provisioned(function, qualifier, version, requested)
        modified = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S+0000")
        function.provisioned[qualifier] = _Provisioning(requested, modified)
        self._provision(function, version)
        return self.get_provisioned_concurrency(name, qualifier)

    def get_provisioned_concurrency(self, name: str, qualifier: str) -> ProvisionedConcurrencyConfig:
        """Raises ProvisionedConcurrencyConfigNotFoundException."""
        function = self._function(name)
        version, _ = self._resolve(function, qualifier)
        asked = function.provisioned.get(qualifier)
        if asked is None:
            raise ProvisionedConcurrencyConfigNotFoundException(
                f"No Provisioned Concurrency Config found for this function: {name}:{qualifier}"
            )
        state = function.pool.state.provisioned.get(version, _NO_PROVISIONED)
        status = _status(state, asked.requested)
        failed = status is ProvisionedConcurrencyStatus.FAILED
        return ProvisionedConcurrencyConfig(
            function=name,
            qualifier=qualifier,
            version=version,
            requested=asked.requested,
            allocated=min(state.allocated, asked.requested),
            available=min(state.allocated, asked.requested),
            status=status,
            status_reason="FUNCTION_ERROR_INIT_FAILURE" if failed else "",
            last_modified=asked.last_modified,
        )

    def delete_provisioned_concurrency(self, name: str, qualifier: str) -> None:
        """Raises ProvisionedConcurrencyConfigNotFoundException."""
        version = self.get_provisioned_concurrency(name, qualifier).version
        function = self._function(name)
        del function.provisioned[qualifier]
        self._provision(function, version)

    def list_provisioned_concurrency(self, name: str) -> tuple[ProvisionedConcurrencyConfig, ...]:
        """Those of all aliases and versions of a function."""
        function = self._function(name)
        return tuple(self.get_provisioned_concurrency(name, qualifier) for qualifier in function.provisioned)

    def put_function_concurrency(self, name: str, reserved: int) -> None:
        """Reserves concurrency for a function, which is also its limit. 0 switches it off.

        Raises InvalidParameterValueException when too little would stay unreserved, or when it is
        less than the function's provisioned concurrency.
        """
        function = self._function(name)
        provisioned = sum(asked.requested for asked in function.provisioned.values())
        if reserved < provisioned:
            raise InvalidParameterValueException(
                f"ReservedConcurrentExecutions is {reserved}, less than the {provisioned} provisioned "
                f"of {name}. Reserve more, or provision less first."
            )
        left = self._unreserved(without=function) - reserved
        if left < self._min_unreserved:
            raise InvalidParameterValueException(
                f"Specified ReservedConcurrentExecutions for function decreases account's "
                f"UnreservedConcurrentExecution below its minimum value of [{self._min_unreserved}]. "
                f"Reserve {max(0, reserved - self._min_unreserved + left)} or less for {name}."
            )
        self._reserve(function, reserved)

    def get_function_concurrency(self, name: str) -> int | None:
        """The reserved concurrency; None when nothing is reserved."""
        return self._function(name).reserved

    def delete_function_concurrency(self, name: str) -> None:
        """Gives the reserved concurrency back to the account."""
        self._reserve(self._function(name), None)

    def account_settings(self) -> AccountSettings:
        """The account's limit, and what is left unreserved."""
        return AccountSettings(
            concurrent_executions=self._limits.account_concurrency,
            unreserved_concurrent_executions=self._unreserved(),
            functions=len(self._functions),
        )

    # Asynchronous invocations, which `AsyncInvocations` makes.

    def put_event_invoke_config(self, name: str, qualifier: str, config: EventInvokeConfig) -> None:
        """Says how events are treated that come by this qualifier, and by no other."""
        self._function(name).event_invoke_configs[qualifier] = config

    def get_event_invoke_config(self, name: str, qualifier: str | None = None) -> EventInvokeConfig:
        """What was put for this very qualifier, or Lambda's defaults."""
        configs = self._function(name).event_invoke_configs
        return configs.get(qualifier or LATEST, _DEFAULT_EVENT_INVOKE_CONFIG)

    def list_event_invoke_configs(self, name: str) -> dict[str, EventInvokeConfig]:
        """What was put, by qualifier."""
        return dict(self._function(name).event_invoke_configs)

    # Development.

    def recycle(self, name: str) -> None:
        """Replaces every environment, so that changed code is loaded.

        Idle ones at once, busy ones after their invocation, provisioned ones by new ones.
        """
        self._function(name).pool.recycle()

    # What is to be seen.

    def snapshot(self) -> Snapshot:
        """Everything at this moment."""
        return Snapshot(
            revision=self._revision,
            uptime_s=self._clock() - self._started_at,
            account=self.account_settings(),
            functions=tuple(
                function_view(
                    function.settings,
                    function.reserved,
                    self.list_provisioned_concurrency(name),
                    function.metrics,
                    self._clock(),
                )
                for name, function in self._functions.items()
            ),
            environments=tuple(
                environment_view(function.settings.name, environment_id, environment)
                for function in self._functions.values()
                for environment_id, environment in function.pool.environments()
            ),
        )

    def invocations_after(self, number: int) -> tuple[InvocationView, ...]:
        """Those of the latest invocations that ended after the one of this number, oldest first."""
        return self._latest.after(number)

    async def changed(self, revision: int) -> int:
        """Waits until the revision is a later one than `revision`, and returns it.

        Changes that come while nobody waits are one change to the next who does.
        """
        while self._revision <= revision:
            if self._change is None:
                self._change = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._change)  # others may wait for it too
        return self._revision

    def render_metrics(self) -> tuple[str, bytes]:
        """Content type and body of `GET /_metrics`, in Prometheus' text format."""
        from local.front.prometheus import render  # only who asks waits for the import

        return render([function.metrics for function in self._functions.values()], self._clock())

    def _changed(self) -> None:
        self._revision += 1
        if self._change is not None:
            if not self._change.done():
                self._change.set_result(None)
            self._change = None

    def _pool_changed(self, metrics: FunctionMetrics) -> None:
        metrics.observe_concurrency()
        self._changed()

    def _say_what_cpu_is_missing(self, function: FunctionSettings) -> None:
        given, here = vcpus(function.memory_mb), os.cpu_count() or 1
        if function.cpu_from_memory and given > here:
            self._log(
                f"{function.name} has {given:.1f} CPUs on Lambda with {function.memory_mb} MB; "
                f"this machine has {here}, so it gets no more than these."
            )

    # Names.

    def _function(self, name: str) -> _Function:
        function = self._functions.get(name)
        if function is None:
            raise ResourceNotFoundException(
                f"Function not found: {name}. Functions: {', '.join(self._functions) or 'none'}."
            )
        return function

    def _resolve(self, function: _Function, qualifier: str | None) -> tuple[str, str]:
        """The version that a qualifier stands for, and the ARN that names it."""
        known = function.arns.get(qualifier)
        if known is None:
            name = qualifier or LATEST
            version = function.aliases.get(name, name)
            arn = function.settings.arn(qualifier)
            if version not in function.versions:
                raise ResourceNotFoundException(f"Function not found: {arn}")
            known = function.arns[qualifier] = version, arn
        return known

    # Concurrency of the account.

    @property
    def _min_unreserved(self) -> int:
        # Small accounts, as new ones are, could not reserve anything otherwise.
        return min(UNRESERVED.value, self._limits.account_concurrency // 10)

    def _unreserved(self, without: _Function | None = None) -> int:
        reserved = sum(other.reserved or 0 for other in self._functions.values() if other is not without)
        return self._limits.account_concurrency - reserved

    def _claimed_by_others(self, function: _Function) -> int:
        return sum(
            concurrency.claimed(other.pool.state)
            for other in self._functions.values()
            if other is not function
        )

    def _reserve(self, function: _Function, reserved: int | None) -> None:
        function.reserved = reserved
        function.pool.set_limits(replace(self._limits, reserved_concurrency=reserved))

    def _check_provisioned(self, function: _Function, qualifier: str, version: str, requested: int) -> None:
        for other in function.provisioned:
            if other != qualifier and self._resolve(function, other)[0] == version:
                raise InvalidParameterValueException(
                    f"Version {version} has provisioned concurrency through {other} already. "
                    f"Delete that first, or change it instead of {qualifier}."
                )
        of_others = sum(asked.requested for name, asked in function.provisioned.items() if name != qualifier)
        if function.reserved is not None:
            limit, what = function.reserved, "reserved"
        else:
            limit, what = self._unreserved() - self._min_unreserved, "unreserved"
            of_others += sum(
                asked.requested
                for other in self._functions.values()
                if other is not function and other.reserved is None
                for asked in other.provisioned.values()
            )
        if requested + of_others > limit:
            raise InvalidParameterValueException(
                f"ProvisionedConcurrentExecutions is {requested}, but only {limit - of_others} of the "
                f"{what} concurrency can be provisioned. Ask for less, or reserve more."
            )

    def _provision(self, function: _Function, version: str) -> None:
        """Makes the environments of a version as many as its qualifiers ask for."""
        target = sum(
            asked.requested
            for qualifier, asked in function.provisioned.items()
            if self._resolve(function, qualifier)[0] == version
        )
        function.pool.set_provisioned(version, target)
        total = sum(asked.requested for asked in function.provisioned.values())
        function.metrics.bill.provision(total, function.settings.memory_mb, self._clock())


def _check(function: FunctionSettings) -> None:
    if function.memory_mb not in _MEMORY_MB:
        raise InvalidParameterValueException(
            f"MemorySize of {function.name} is {function.memory_mb} MB, "
            f"expected {_MEMORY_MB.start} to {_MEMORY_MB.stop - 1}."
        )
    if function.cpu_from_memory and not can_limit_cpu():
        raise InvalidParameterValueException(
            "CPU in proportion to memory needs Linux, which tells how much CPU a process has used. "
            "Leave --cpu-from-memory out here."
        )
    if function.freeze and not die_with_parent():
        raise InvalidParameterValueException(
            "Environments can only be frozen where they end with the emulator, even if that is killed; "
            "util-linux's `setpriv --pdeathsig`, which does it, is not here. Leave --freeze out."
        )
    if function.architecture not in PRICES:
        raise InvalidParameterValueException(
            f'Architecture of {function.name} is "{function.architecture}", expected {" or ".join(PRICES)}.'
        )


def _status(state: Provisioned, requested: int) -> ProvisionedConcurrencyStatus:
    if state.allocated >= requested:
        return ProvisionedConcurrencyStatus.READY
    if state.failed:
        return ProvisionedConcurrencyStatus.FAILED
    return ProvisionedConcurrencyStatus.IN_PROGRESS


def _crash(version: str) -> Invoked:
    """The answer of an emulator that is leaving."""
    return Invoked(
        outcome=Outcome(InvocationStatus.ERROR, error_type="Runtime.ExitError"),
        executed_version=version,
        request_id="",
        log_tail=b"",
        duration_ms=0.0,
        billed_ms=0,
        init_ms=None,
        max_memory_mb=0,
        cold=False,
        provisioned=False,
        spillover=False,
    )
