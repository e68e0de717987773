"""The emulator: one port, behind it the APIs and functions of a template, and the Lambda API.

It stands where API Gateway and the Lambda service stand in the cloud.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import uvicorn
import uvloop

from coldframe.capacity.limits import CONCURRENCY, HTTP_INTEGRATION, INIT, VCPU
from coldframe.errors import ColdframeError
from coldframe.timing import Clock
from local.front import browsers, console, event_stream
from local.front.console import Console
from local.front.event_stream import EventStream
from local.front.lambda_api.door import LambdaApi, is_lambda_api
from local.front.metrics_door import PATH as METRICS_PATH
from local.front.metrics_door import MetricsDoor
from local.front.summary import summary
from local.gateway.definitions import ANY, DEFAULT_ROUTE, DEFAULT_STAGE, Api, ApiKind, PayloadFormat, Route
from local.gateway.gateway import Gateways
from local.gateway.payload_v2 import HttpRequest, HttpResponse, header
from local.lambda_service.async_invocations import AsyncInvocations, Sleep
from local.lambda_service.lambda_types import LambdaException
from local.lambda_service.log_pipe import Log
from local.lambda_service.service import LambdaService
from local.lambda_service.settings import INTERPRETER, FunctionSettings
from local.lambda_service.spawn import function_environ, raise_file_limit
from local.paths import ROOT
from local.stores.places import StoreOptions
from local.stores.stores import Stores
from local.template.functions import Function
from local.template.notes import lines
from local.template.template import Template

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_LAST_PORT = 65535
_LIVE = "live"  # the alias that is made where there is no template to name one
# An address that means "all of this machine's" is none to connect to.
_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


def _print(line: str) -> None:
    # Whoever read the log may have left (`| head`); that is no reason to stop serving.
    with contextlib.suppress(BrokenPipeError):
        print(line, flush=True)


class ClientLeft(Exception):
    """The connection ended before the request did."""


class CannotListen(ColdframeError):
    """The emulator's address cannot be listened on; the text says what to do."""


class Door(Protocol):
    """What answers the requests of some paths."""

    @property
    def max_body_bytes(self) -> int:
        """More is not read."""

    def too_large(self) -> HttpResponse:
        """The answer to a larger body."""

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request."""


@dataclass(frozen=True)
class EmulatorOptions:
    """What the emulator is told. Units end the names.

    port: 0 takes a free one; `Emulator.url` says which.
    template: what to run. None: one function behind an HTTP API, which the fields from `timeout_s` to
    `task_root` describe.
    max_environments: the most environments at once that this machine is to bear of a function without
    reserved concurrency, unless more is provisioned; it is no reservation. None: what the account has.
    request_rate: synchronous requests are at most ten a second for each unit of concurrency, as on Lambda.
    provisioned_concurrency: of that one function's alias `live`, which is made for it; 0 for none.
    stores: where tables, buckets and queues of the template are.
    reload: environments are replaced when the code of their function changes.
    environ: variables of every function, over the template's and the COLDFRAME_* ones of this process.
    init_limit_s: an init phase that takes longer is run again inside the invocation.
    """

    host: str = "127.0.0.1"
    port: int = 3000
    template: Template | None = None
    max_environments: int | None = None
    provisioned_concurrency: int = 0
    account_concurrency: int = CONCURRENCY.value
    request_rate: bool = True
    keep_alive_s: float = 600.0
    timeout_s: float = 29.0
    init_limit_s: float = INIT.value
    memory_mb: int = VCPU.value
    architecture: str = "x86_64"
    cpu_from_memory: bool = False
    handler: str = "functions.predict.app.handler"
    task_root: Path = ROOT
    environ: Mapping[str, str] = field(default_factory=dict)
    stores: StoreOptions = field(default_factory=StoreOptions)
    reload: bool = False
    log: Log = _print


def run(options: EmulatorOptions) -> None:
    """Serves until SIGINT or SIGTERM, then stops every environment and returns.

    Raises CannotListen when the address is taken or not allowed.
    """
    raise_file_limit()
    uvloop.run(_serve_until_signal(options))


class Emulator:
    """The running emulator, for as long as the `async with` block.

    clock: seconds, for keep-alive; a test may turn it forward. sleep: between the attempts of an
    asynchronous event.
    """

    def __init__(
        self, options: EmulatorOptions, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._options = options
        self._template = options.template or _one_function(options)
        self.service = LambdaService(
            options.log,
            account_concurrency=options.account_concurrency,
            machine_environments=options.max_environments,
            request_rate=options.request_rate,
            keep_alive_s=options.keep_alive_s,
            clock=clock,
        )
        self.stores = Stores(self._template, options.stores, options.log)
        self.asynchronous = AsyncInvocations(self.service, self.stores, options.log, clock=clock, sleep=sleep)
        self._names = browsers.own_names(options.host)
        lambda_api = LambdaApi(self.service, self.asynchronous)
        self._lambda_api = browsers.OwnPagesOnly(lambda_api, self._names)
        self._console = browsers.OwnPagesOnly(Console(self._address), self._names, always=True)
        self._events = EventStream(self.service, self._names)
        self._gateways = Gateways(self._template.apis, self.service.invoke, options.log, clock)
        self._own_pages: Mapping[str, Door] = {METRICS_PATH: MetricsDoor(self.service)}
        self._reloading: asyncio.Task[None] | None = None
        self._server = _Server(_server_config(self._app))
        self._serving: asyncio.Task[None] | None = None
        self._port = options.port

    @property
    def url(self) -> str:
        """Where it listens, with the port that it got."""
        host = self._options.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}"

    def _address(self) -> tuple[str, int]:
        """Where this process reaches its own port."""
        return _REACHABLE.get(self._options.host, self._options.host), self._port

    def notes(self) -> Iterator[str]:
        """What a reader of the log should know from the start."""
        yield f"Console: {self.url}{console.PATH}"
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
        if (most := self._options.max_environments) is not None:
            yield (
                f"This machine's limit, which AWS does not know: {most} environments at once of a function "
                "without reserved concurrency; more requests get 429. Change it with --concurrency."
            )
        yield from lines(self._template.notes)

    async def __aenter__(self) -> Emulator:
        for function in self._template.functions:
            self._create(function)
        listener = _listen(self._options.host, self._options.port)
        self._port = listener.getsockname()[1]
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        await self.stores.__aenter__()
        try:
            self._provision()
        except LambdaException:
            await self.__aexit__(None, None, None)
            raise
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
        self._options.log(
            f"{name} has no AutoPublishAlias: the alias {_LIVE} is made for its provisioned concurrency. "
            f"Events of the template call {name} itself, and stay cold, as on AWS."
        )
        return _LIVE

    async def _recycle_on_change(self) -> None:
        from local.front.reload import recycle_on_change  # only who asks for it waits for the import

        code = {function.settings.name: function.code for function in self._template.functions}
        await recycle_on_change(code, self.service.recycle, self._options.log)

    def _create(self, function: Function) -> None:
        settings = function.settings
        # A developer's COLDFRAME_* variables win over the template's, and what `up` was told over both.
        environ = {
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
        self._server.should_exit = True
        self._events.close()
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.wait({self._reloading})
        await self.asynchronous.close()
        # First the environments, so that callers in flight get their answer and the
        # server has nothing left to wait for.
        await self.service.close()
        await self.stores.__aexit__(exc_type, exc, traceback)
        if self._serving is not None:
            await self._serving

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._respond(scope, receive)
        except ClientLeft:
            return
        if response is None:
            await self._events.respond(receive, send)
            return
        headers = [*response.headers, (b"content-length", str(len(response.body)).encode("ascii"))]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _respond(self, scope: Scope, receive: Receive) -> HttpResponse | None:
        """Each door has its own paths; what is nobody else's is the APIs'. None: the stream of events."""
        path = scope["raw_path"].decode("latin-1")
        if path == event_stream.PATH:
            return self._events.refusal(_request(scope, b""))
        door = self._door(path, scope)
        body = await _read_body(receive, door.max_body_bytes)
        if body is None:
            return door.too_large()
        response = await door.respond(_request(scope, body))
        self.stores.start()  # not before the first answer, which it would slow down
        return response

    def _door(self, path: str, scope: Scope) -> Door:
        if path in self._own_pages:
            return self._own_pages[path]
        if console.is_console(path):
            return self._console
        if is_lambda_api(path):
            return self._lambda_api
        return self._gateways.of(header(scope["headers"], b"host"))


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: `run` stops the environments before the server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve_until_signal(options: EmulatorOptions) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with Emulator(options) as emulator:
        options.log(f"Coldframe is listening on {emulator.url}")
        for line in emulator.notes():
            options.log(line)
        await stopped.wait()
    for line in summary(emulator.service.snapshot()):
        options.log(line)


def _one_function(options: EmulatorOptions) -> Template:
    """The template of one function that answers every path of one HTTP API, through its alias `live`."""
    settings = FunctionSettings(
        handler=options.handler,
        task_root=options.task_root.resolve(),
        memory_mb=options.memory_mb,
        timeout_s=options.timeout_s,
        init_limit_s=options.init_limit_s,
        architecture=options.architecture,
        runtime=INTERPRETER,
        cpu_from_memory=options.cpu_from_memory,
    )
    timeout_s = HTTP_INTEGRATION.value / 1000
    route = Route(ANY, DEFAULT_ROUTE, settings.name, _LIVE, PayloadFormat.V2, timeout_s)
    function = Function(
        settings,
        logical_id=settings.name,
        alias=_LIVE,
        provisioned_concurrency=options.provisioned_concurrency,
    )
    return Template(functions=(function,), apis=(Api("local", ApiKind.HTTP, (route,)),))


def _server_config(app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens already, so that the address is known to be ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP by name: asyncio turns Nagle's delay off only where the protocol is given.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Connections of a run that just ended do not count as "in use".
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(socket.SOMAXCONN)
    except OSError as exc:
        listener.close()
        raise CannotListen(_cannot_listen(host, port, exc)) from exc
    return listener


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        other = port + 1 if port < _LAST_PORT else port - 1
        return (
            f"Port {port} on {host} is in use by another program. "
            f"Stop that program, or choose a free port: --port {other}."
        )
    return (
        f"Cannot listen on {host}, port {port}: {error.strerror}. "
        "Choose an address of this machine with --host and a port from 1024 to 65535 with --port."
    )


async def _read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """The whole body, or None as soon as it is too large.

    Raises ClientLeft rather than let half a body pass for a whole one.
    """
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > max_bytes:
            return None
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _request(scope: Scope, body: bytes) -> HttpRequest:
    return HttpRequest(
        method=scope["method"],
        path=scope["raw_path"].decode("latin-1"),
        query=scope["query_string"].decode("latin-1"),
        headers=scope["headers"],
        body=body,
        source_ip=scope["client"][0] if scope.get("client") else "",
        protocol=f"HTTP/{scope['http_version']}",
    )
