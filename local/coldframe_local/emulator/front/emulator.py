"""The emulator: one port, behind it the APIs and functions of a template, and the Lambda API.

It stands where API Gateway and the Lambda service stand in the cloud.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType

import uvloop

from coldframe.server.http_server import HttpServer
from coldframe.server.listening import listen
from coldframe.timing import Clock
from coldframe_local.emulator.aws_api import cloudwatch, logs, scaling
from coldframe_local.emulator.aws_api.scaling import ScheduledActions
from coldframe_local.emulator.console import console
from coldframe_local.emulator.front.asgi import Application, PatientConnection
from coldframe_local.emulator.front.handlers import Handlers
from coldframe_local.emulator.front.summary import summary
from coldframe_local.emulator.gateway.definitions import DEFAULT_STAGE
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.environments.scratch import remove_leftovers
from coldframe_local.emulator.lambda_service.environments.spawn import (
    can_freeze,
    function_environ,
    raise_file_limit,
)
from coldframe_local.emulator.lambda_service.event_sources.async_invocations import AsyncInvocations, Sleep
from coldframe_local.emulator.lambda_service.event_sources.log_subscriptions import LogSubscriptions
from coldframe_local.emulator.lambda_service.event_sources.pollers import Pollers
from coldframe_local.emulator.lambda_service.event_sources.schedules import Schedules
from coldframe_local.emulator.lambda_service.lambda_types import LambdaException
from coldframe_local.emulator.lambda_service.telemetry.log_groups import LogGroups
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import SafeLog
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.stores.places import LOCAL_CREDENTIALS
from coldframe_local.emulator.stores.stores import Stores
from coldframe_local.emulator.template.functions.functions import Function
from coldframe_local.emulator.template.syntax.template_warnings import lines, short_lines

READ_TIMEOUT_S = 30
"""Time for a request's head to arrive, and again for its body. A new connection has it to begin one."""

_KEEP_ALIVE_S = 5
_GRACE_S = 2  # time that clients have to read their answers when the emulator ends
_LIVE = "live"  # the alias that is made where only the options ask for provisioned concurrency
# The addresses that listen on every address of this machine, and one of these to connect to.
_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(options: EmulatorOptions) -> None:
    """Serves until SIGINT, SIGTERM or SIGHUP, then stops every environment and returns.

    Raises CannotListen when the address is taken or not allowed.
    """
    raise_file_limit()
    remove_leftovers()
    uvloop.run(_serve_until_signal(options))


class Emulator:
    """The running emulator, for as long as the `async with` block.

    clock: seconds, for keep-alive; a test may turn it forward. sleep: between the attempts of an
    asynchronous event. now, nap: seconds since 1970, and how a schedule waits.
    """

    def __init__(
        self,
        options: EmulatorOptions,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        now: Clock = time.time,
        nap: Sleep = asyncio.sleep,
    ) -> None:
        self._options = options
        self._template = options.template
        self.log = SafeLog(options.log)
        self.service = LambdaService(
            self.log,
            account_concurrency=options.account_concurrency,
            machine_environments=options.max_environments,
            switches=options.switches,
            keep_alive_s=options.keep_alive_s,
            idle_expiry=options.idle_expiry,
            max_age_s=options.max_age_s,
            seed=options.seed,
            clock=clock,
            now=now,
            stream_log=lambda name: partial(self._logged, name),
        )
        self.stores = Stores(self._template, options.stores, self.log)
        self.asynchronous = AsyncInvocations(self.service, self.stores, self.log, clock=clock, sleep=sleep)
        self.log_subscriptions = LogSubscriptions(
            self._template.event_sources.subscriptions, self.asynchronous, now, nap
        )
        schedules = self._template.event_sources.schedules if options.schedules else ()
        self.schedules = Schedules(schedules, self.asynchronous, self.log, now, nap)
        mappings = self._template.event_sources.mappings if options.event_source_mappings else ()
        self.pollers = Pollers(mappings, self.service, self.stores, self.log, clock)
        self.scaling = ScheduledActions(self.service, self.log, now, nap)
        self._log_groups = LogGroups(now)
        self._group_of = {each.settings.name: each.log_group for each in self._template.functions}
        for group in self._group_of.values():
            self._log_groups.create(group)
        self._handlers = Handlers(
            options,
            self.service,
            self.asynchronous,
            self._address,
            self.log,
            clock,
            self.scaling,
            self._log_groups,
        )
        self._reloading: asyncio.Task[None] | None = None
        self._port = options.port

    def _logged(self, function: str, stream: str, line: str) -> None:
        """Receives each line of each function's log."""
        self.log_subscriptions.add(function, stream, line)
        self._log_groups.add(self._group_of[function], line)

    @property
    def url(self) -> str:
        """Where it listens, with the port that it got."""
        host = self._options.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}"

    def _address(self) -> tuple[str, int]:
        """Where this process reaches its own port."""
        return _REACHABLE.get(self._options.host, self._options.host), self._port

    def notes(self) -> Iterator[str]:
        """Remarks for readers of the log, printed at the start."""
        yield f"Console: {self.url}{console.PATH}"
        if self.stores.url is not None:
            yield f"DynamoDB, S3 and SQS, in memory: {self.stores.url}"
        first, *others = self._template.apis or (None,)
        if first is not None and first.stage != DEFAULT_STAGE:
            yield f"{first.name}: {self.url}/{first.stage}"
        for api in others:
            stage = "" if api.stage == DEFAULT_STAGE else f"/{api.stage}"
            yield f"{api.name}: http://{api.name.lower()}.localhost:{self._port}{stage}"
        for function in self._template.functions:
            if function.other_events:
                events = ", ".join(function.other_events)
                yield f"{function.settings.name} is called by {events} on AWS; here by the Lambda API only."
        if self._options.schedules:
            yield from self.schedules.notes()
        elif self._template.event_sources.schedules:
            yield "Schedules of the template do not run: `schedules` is false."
        if self._options.event_source_mappings:
            yield from self.pollers.notes()
        elif self._template.event_sources.mappings:
            yield "Queues of the template are not read: `event_source_mappings` is false."
        yield from self.log_subscriptions.notes()
        yield from (lines if self._options.verbose else short_lines)(self._template.notes)
        if not can_freeze() and any(function.settings.freeze for function in self._template.functions):
            yield (
                "Environments run on between invocations, which Lambda freezes: one that is stopped would "
                "outlive a killed emulator. Install util-linux's `setpriv`, which ends them together."
            )
        if (most := self._options.max_environments) is not None:
            yield (
                f"This machine's limit, which AWS does not know: {most} environments at once of a function "
                "without reserved concurrency; more requests get 429. Change it with --concurrency."
            )

    async def __aenter__(self) -> Emulator:
        listener = listen(self._options.host, self._options.port)
        self._port = listener.getsockname()[1]
        try:
            for function in self._template.functions:
                self._create(function)
        except BaseException:
            listener.close()
            raise
        # The stores start after the first answer, which they would slow down.
        application = Application(self._handlers, self.stores.start)
        self._server = HttpServer(
            application, listener, _KEEP_ALIVE_S, READ_TIMEOUT_S, PatientConnection, log_level="warning"
        )
        await self._server.start()
        await self.stores.__aenter__()
        try:
            self._provision()
        except LambdaException:
            await self.__aexit__(None, None, None)
            raise
        self.schedules.start()
        self.pollers.start()
        if self._options.reload:
            self._reloading = asyncio.create_task(self._recycle_on_change())
        return self

    def _provision(self) -> None:
        for function in self._template.functions:
            if function.provisioned_concurrency:
                self.service.concurrency.put_provisioned(
                    function.settings.name,
                    function.alias or self._alias_for_provisioned(function.settings.name),
                    function.provisioned_concurrency,
                )

    def _alias_for_provisioned(self, name: str) -> str:
        """Provisioned concurrency belongs to an alias, so one is made where only the options ask for it."""
        self.service.functions.put_alias(name, _LIVE, self.service.functions.publish(name))
        self.log(
            f"{name} has no AutoPublishAlias: the alias {_LIVE} is made for its provisioned concurrency. "
            f"Events of the template call {name} itself, and stay cold, as on AWS."
        )
        return _LIVE

    async def _recycle_on_change(self) -> None:
        from coldframe_local.emulator.front.reload import (
            recycle_on_change,  # only who asks for it waits for the import
        )

        code = {function.settings.name: function.code for function in self._template.functions}
        await recycle_on_change(code, self.service.recycle, self.log)

    def _aws_environ(self) -> dict[str, str]:
        """Where boto3 in a function finds what the emulator answers; a template's own variables win."""
        host, port = self._address()
        own = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        return LOCAL_CREDENTIALS | {
            "AWS_ENDPOINT_URL_LAMBDA": own,
            "AWS_ENDPOINT_URL_CLOUDWATCH": own + cloudwatch.PATH,
            "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": own + logs.PATH,
            "AWS_ENDPOINT_URL_APPLICATION_AUTO_SCALING": own + scaling.PATH,
        }

    def _create(self, function: Function) -> None:
        settings = function.settings
        # A developer's COLDFRAME_* variables win over the template's, and what `up` was told over both.
        environ = {
            **self._aws_environ(),
            **settings.environ,
            **function_environ({}, os.environ),
            **self.stores.environ,
            **self._options.environ,
        }
        self.service.create_function(replace(settings, environ=environ))
        if function.alias is not None:  # AutoPublishAlias publishes a version and lets the alias point to it
            version = self.service.functions.publish(settings.name)
            self.service.functions.put_alias(settings.name, function.alias, version)
        for qualifier, config in function.event_invoke_configs.items():
            self.service.put_event_invoke_config(settings.name, qualifier, config)
        if function.reserved_concurrency is not None:
            self.service.concurrency.put_reserved(settings.name, function.reserved_concurrency)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._server.stop_accepting()
        self._handlers.events.close()
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.wait({self._reloading})
        await self.schedules.close()
        await self.scaling.close()
        await self.pollers.close()
        await self.log_subscriptions.close()
        await self.asynchronous.close()
        # First the environments, so that callers in flight get their answer and the
        # server has nothing left to wait for.
        await self.service.close()
        await self.stores.__aexit__(exc_type, exc, traceback)
        await self._server.close(_GRACE_S)
        self._log_groups.close()


async def _serve_until_signal(options: EmulatorOptions) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = [number for number in _SIGNALS if not _is_kept_from_us(number)]
    for number in signals:
        loop.add_signal_handler(number, _leave, loop, stopped, signals)
    async with Emulator(options) as emulator:
        emulator.log(f"Coldframe is listening on {emulator.url}")
        for line in emulator.notes():
            emulator.log(line)
        await stopped.wait()
    for line in summary(emulator.service.snapshot()):
        emulator.log(line)


def _is_kept_from_us(number: signal.Signals) -> bool:
    """Whether `nohup` started this process, which is to outlive its terminal."""
    return number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN


def _leave(
    loop: asyncio.AbstractEventLoop, stopped: asyncio.Event, signals: Sequence[signal.Signals]
) -> None:
    """The first signal ends the emulator in good order; the second one ends the process at once."""
    stopped.set()
    for number in signals:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)
