"""The emulated Lambda service of one account: the base of HTTP APIs, Lambda API and console."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from types import TracebackType

from coldframe.capacity.admission import LATEST, Arrival, Limits, Throttle
from coldframe.capacity.idle_expiry import IdleExpiry, Keeps
from coldframe.capacity.limits import CONCURRENCY, MAX_AGE
from coldframe.capacity.prices import Bill
from coldframe.capacity.switches import ALL_RATES, Switches
from coldframe.cpus import usable_cpus
from coldframe.timing import Clock
from coldframe_local.emulator.lambda_service.account.changes import Changes
from coldframe_local.emulator.lambda_service.account.concurrency import Concurrency
from coldframe_local.emulator.lambda_service.account.functions import Functions, check, differences
from coldframe_local.emulator.lambda_service.account.hosted import HostedFunction
from coldframe_local.emulator.lambda_service.account.views import environment_view, function_view
from coldframe_local.emulator.lambda_service.environments.pool import EnvironmentPool, PoolClosed
from coldframe_local.emulator.lambda_service.environments.running import Call
from coldframe_local.emulator.lambda_service.event_sources.destinations import EventInvokeConfig
from coldframe_local.emulator.lambda_service.lambda_types import InvocationView, Invoked, Snapshot
from coldframe_local.emulator.lambda_service.report import InvocationStatus, Outcome
from coldframe_local.emulator.lambda_service.settings import FunctionSettings
from coldframe_local.emulator.lambda_service.telemetry.latest_invocations import LatestInvocations
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log, SafeLog, StreamLog, no_stream
from coldframe_local.emulator.lambda_service.telemetry.metrics import FunctionMetrics
from coldframe_local.emulator.lambda_service.telemetry.minutes import Minutes

_DEFAULT_EVENT_INVOKE_CONFIG = EventInvokeConfig()


class LambdaService:
    """Functions by name, each with versions, aliases and execution environments.

    functions: them, their versions and aliases. concurrency: reserved and provisioned.
    All methods run in the event loop's thread; methods without `async` return at once.
    Errors are `LambdaException`s. qualifier: a version, an alias, or None for `$LATEST`.
    machine_environments: the most environments of a function without a reservation; None: the account's.
    switches: which of AWS's rates hold. max_age_s: of an environment; None: no limit.
    idle_expiry, seed: idle environments are kept for a time that is drawn for each; None: for keep_alive_s.
    init_cores: init phases that may run at the same time; others wait, unbilled. None: one for each core.
    clock: seconds, for keep-alive, rates and cost; a test may turn it forward. now: seconds since 1970.
    stream_log: receiver of a function's lines with their streams, by the function's name.
    """

    def __init__(
        self,
        log: Log,
        *,
        account_concurrency: int = CONCURRENCY.value,
        machine_environments: int | None = None,
        switches: Switches = ALL_RATES,
        keep_alive_s: float = 600.0,
        idle_expiry: IdleExpiry | None = None,
        max_age_s: float | None = MAX_AGE.value,
        seed: int = 0,
        init_cores: int | None = None,
        clock: Clock = time.monotonic,
        now: Clock = time.time,
        stream_log: Callable[[str], StreamLog] = lambda name: no_stream,
    ) -> None:
        self._stream_log = stream_log
        self._minutes: defaultdict[str, Minutes] = defaultdict(lambda: Minutes(now))
        self._log = SafeLog(log)
        limits = Limits(
            keep_alive_s=keep_alive_s,
            max_age_s=max_age_s,
            account_concurrency=account_concurrency,
            machine_environments=machine_environments,
        )
        self._limits = switches.of(limits)
        self._idle_expiry, self._seed = idle_expiry, seed
        self._clock = clock
        self._started_at = clock()
        self._changes = Changes()
        self._latest = LatestInvocations()
        self._cores = asyncio.Semaphore(init_cores or usable_cpus())
        self.functions = Functions(self._changes.add)
        self.concurrency = Concurrency(self.functions, self._limits)

    async def __aenter__(self) -> LambdaService:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops every environment and waits until no process is left. Callers get a crash."""
        await asyncio.gather(*(function.pool.close() for function in self.functions))

    def create_function(self, settings: FunctionSettings) -> None:
        """Adds a function: `$LATEST` and nothing else.

        Raises ResourceConflictException, InvalidParameterValueException.
        """
        check(settings)
        pool = EnvironmentPool(
            settings,
            self._limits,
            self._log,
            self._cores,
            on_change=lambda: self._pool_changed(metrics),
            on_provisioned=lambda init_ms: metrics.provisioned_initialized(init_ms, settings.memory_mb),
            keeps=Keeps(self._idle_expiry, self._seed),
            clock=self._clock,
            stream_log=self._stream_log(settings.name),
        )
        bill = Bill(settings.architecture, self._clock())
        metrics = FunctionMetrics(settings.name, lambda: pool.state, bill)
        self.functions.add(HostedFunction(settings, pool, metrics, self._clock))
        for line in differences(settings):
            self._log(line)

    def arn(self, name: str, qualifier: str | None = None) -> str:
        """The ARN by which a function, a version or an alias is called."""
        return self.functions.hosted(name).settings.arn(qualifier)

    def recycle(self, name: str) -> None:
        """Replaces every environment, so that changed code is loaded.

        Idle ones at once, busy ones after their invocation, provisioned ones by new ones.
        """
        self.functions.hosted(name).recycle()

    # Invocations.

    async def invoke(
        self,
        name: str,
        qualifier: str | None,
        event: bytes,
        client_context: str = "",
        synchronous: bool = True,
    ) -> Invoked | Throttle:
        """One invocation. event: JSON. client_context: JSON in ASCII. Raises ResourceNotFoundException.

        synchronous: somebody waits for the result; the request rate is theirs only.
        """
        function = self.functions.hosted(name)
        version, arn = function.resolve(qualifier)
        now, started_s = self._clock(), time.perf_counter()
        function.metrics.arrived(now)
        claimed, requested = self.concurrency.taken_by_others(function, now)
        arrival = Arrival(version, claimed, requested, synchronous)
        try:
            with self._minutes[name].under_way(qualifier) as counted:
                ended = await function.pool.invoke(Call(event, arn, client_context), arrival)
                counted.ended(ended)
        except PoolClosed:  # the emulator is leaving
            crash = Outcome(InvocationStatus.ERROR, error_type="Runtime.ExitError")
            return Invoked(crash, executed_version=version)
        function.recording.add(now - self._started_at, ended)
        self._count(function, ended, (time.perf_counter() - started_s) * 1000)
        return ended

    def _count(self, function: HostedFunction, ended: Invoked | Throttle, latency_ms: float) -> None:
        if isinstance(ended, Throttle):
            function.metrics.throttled(self._clock())
        else:
            function.metrics.invoked(ended, latency_ms)
        self._latest.ended(function.settings.name, ended, latency_ms)
        self._changes.add()

    # Asynchronous invocations, which `AsyncInvocations` makes.

    def put_event_invoke_config(self, name: str, qualifier: str, config: EventInvokeConfig) -> None:
        """Says how events are treated that come by this qualifier, and by no other."""
        self.functions.hosted(name).event_invoke_configs[qualifier] = config

    def get_event_invoke_config(self, name: str, qualifier: str | None = None) -> EventInvokeConfig:
        """Configuration of this very qualifier, or Lambda's defaults."""
        configs = self.functions.hosted(name).event_invoke_configs
        return configs.get(qualifier or LATEST, _DEFAULT_EVENT_INVOKE_CONFIG)

    def list_event_invoke_configs(self, name: str) -> dict[str, EventInvokeConfig]:
        """Configurations by qualifier."""
        return dict(self.functions.hosted(name).event_invoke_configs)

    def is_switched_off(self, name: str) -> bool:
        """Whether the function's reserved concurrency is 0."""
        return self.concurrency.get_reserved(name) == 0

    # What is to be seen.

    def now(self) -> float:
        """Seconds by the clock of keep-alive, rates and cost."""
        return self._clock()

    def uptime_s(self) -> float:
        """Since the start."""
        return self._clock() - self._started_at

    def snapshot(self) -> Snapshot:
        """Everything at this moment."""
        return Snapshot(
            revision=self._changes.revision,
            uptime_s=self.uptime_s(),
            account=self.concurrency.account_settings(),
            functions=tuple(
                function_view(
                    function,
                    self.concurrency.list_provisioned(function.settings.name),
                    self._limits.machine_environments,
                    self._clock(),
                )
                for function in self.functions
            ),
            environments=tuple(
                environment_view(function.settings.name, environment_id, environment)
                for function in self.functions
                for environment_id, environment in function.pool.environments()
            ),
        )

    def minutes(self, name: str) -> Minutes:
        """CloudWatch's metrics of a function, by the minute."""
        return self._minutes[name]

    def invocations_after(self, number: int) -> tuple[InvocationView, ...]:
        """Those of the latest invocations that ended after the one of this number, oldest first."""
        return self._latest.after(number)

    async def changed(self, revision: int) -> int:
        """Waits until the revision is a later one than `revision`, and returns it."""
        return await self._changes.after(revision)

    def render_metrics(self) -> tuple[str, bytes]:
        """Content type and body of `GET /_metrics`, in Prometheus' text format."""
        from coldframe_local.emulator.lambda_service.telemetry.prometheus import (
            render,  # only who asks waits for the import
        )

        return render([function.metrics for function in self.functions], self._clock())

    def _pool_changed(self, metrics: FunctionMetrics) -> None:
        metrics.observe_concurrency()
        self._changes.add()
