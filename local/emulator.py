"""The HTTP front door of the emulator: request -> event -> environment -> response.

It stands where API Gateway's HTTP API and the Lambda service stand in the cloud.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import uvicorn
import uvloop

from coldframe.concurrency import Throttle
from coldframe.errors import ColdframeError
from local.events import (
    HttpRequest,
    HttpResponse,
    MalformedResponse,
    event_from_request,
    gateway_problem,
    response_from_result,
)
from local.lambda_types import LIVE, Invoked
from local.process import FunctionSettings, Log, function_environ
from local.report import InvocationStatus
from local.service import Clock, LambdaService

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# Lambda's synchronous payload, which is the event and not the body alone.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html, read 2026-11.
MAX_EVENT_BYTES = 6 * 1024 * 1024

# A function's failure. API Gateway's HTTP API says 500 here; 502 tells it from a 500
# that the function itself answered.
_FAILED = gateway_problem(
    HTTPStatus.BAD_GATEWAY,
    {"message": "Internal Server Error"},
    "The function failed or its environment died. The log of `coldframe up` says why.",
)
_TIMED_OUT = gateway_problem(
    HTTPStatus.SERVICE_UNAVAILABLE,
    {"message": "Service Unavailable"},
    "The function took longer than its timeout. Send fewer texts at once, or raise --timeout-s.",
)
_TOO_LONG = gateway_problem(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    {"message": "Request Too Long"},
    f"The event with this body is over Lambda's {MAX_EVENT_BYTES} bytes. Send it in parts.",
)

_REPOSITORY_ROOT = Path(__file__).resolve().parent.parent
_LAST_PORT = 65535


def _print(line: str) -> None:
    # Whoever read the log may have left (`| head`); that is no reason to stop serving.
    with contextlib.suppress(BrokenPipeError):
        print(line, flush=True)


class ClientLeft(Exception):
    """The connection ended before the request did."""


class CannotListen(ColdframeError):
    """The emulator's address cannot be listened on; the text says what to do."""


@dataclass(frozen=True)
class EmulatorOptions:
    """What the emulator is told. Units end the names.

    port: 0 takes a free one; `Emulator.url` says which.
    max_environments: the function's reserved concurrency; one more at a time is throttled. None for
    what the account has.
    provisioned_concurrency: of the alias `live`, which requests invoke; 0 for none.
    environ: variables of the function, over the COLDFRAME_* ones of this process.
    init_limit_s: an init phase that takes longer is run again inside the invocation.
    """

    host: str = "127.0.0.1"
    port: int = 3000
    max_environments: int | None = 10
    provisioned_concurrency: int = 0
    account_concurrency: int = 1000
    keep_alive_s: float = 600.0
    timeout_s: float = 29.0
    init_limit_s: float = 10.0
    memory_mb: int = 1769
    architecture: str = "x86_64"
    cpu_from_memory: bool = False
    handler: str = "functions.predict.app.handler"
    task_root: Path = _REPOSITORY_ROOT
    environ: Mapping[str, str] = field(default_factory=dict)
    log: Log = _print


def run(options: EmulatorOptions) -> None:
    """Serves until SIGINT or SIGTERM, then stops every environment and returns.

    Raises CannotListen when the address is taken or not allowed.
    """
    uvloop.run(_serve_until_signal(options))


class Emulator:
    """The running emulator, for as long as the `async with` block.

    clock: seconds, for keep-alive; a test may turn it forward.
    """

    def __init__(self, options: EmulatorOptions, clock: Clock = time.monotonic) -> None:
        self._options = options
        self.service = LambdaService(
            options.log,
            account_concurrency=options.account_concurrency,
            keep_alive_s=options.keep_alive_s,
            clock=clock,
        )
        self._function = _function(options)
        self._server = _Server(_server_config(self._app))
        self._serving: asyncio.Task[None] | None = None
        self._port = options.port

    @property
    def url(self) -> str:
        """Where it listens, with the port that it got."""
        host = self._options.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}"

    async def __aenter__(self) -> Emulator:
        name, options = self._function.name, self._options
        self.service.create_function(self._function)
        if options.max_environments is not None:
            self.service.put_function_concurrency(name, options.max_environments)
        listener = _listen(self._options.host, self._options.port)
        self._port = listener.getsockname()[1]
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        if options.provisioned_concurrency:
            self.service.put_provisioned_concurrency(name, LIVE, options.provisioned_concurrency)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        # First the environments, so that callers in flight get their answer and the
        # server has nothing left to wait for.
        await self.service.close()
        if self._serving is not None:
            await self._serving

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._respond(scope, receive)
        except ClientLeft:
            return
        headers = [*response.headers, (b"content-length", str(len(response.body)).encode("ascii"))]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _respond(self, scope: Scope, receive: Receive) -> HttpResponse:
        body = await _read_body(receive)
        if body is None:
            return _TOO_LONG
        event = event_from_request(_request(scope, body), str(uuid.uuid4()), time.time())
        payload = msgspec.json.encode(event)
        if len(payload) > MAX_EVENT_BYTES:
            return _TOO_LONG
        return self._response(await self.service.invoke(self._function.name, LIVE, payload))

    def _response(self, result: Invoked | Throttle) -> HttpResponse:
        if isinstance(result, Throttle):
            return _throttled(result)
        outcome = result.outcome
        if outcome.status is InvocationStatus.TIMEOUT:
            return _TIMED_OUT
        if outcome.status is not InvocationStatus.SUCCESS:
            return _FAILED
        try:
            return response_from_result(outcome.payload)
        except MalformedResponse as exc:
            self._options.log(f"Malformed Lambda proxy response: {exc}. Return a payload 2.0 response.")
            return _FAILED


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
        await stopped.wait()


def _function(options: EmulatorOptions) -> FunctionSettings:
    return FunctionSettings(
        handler=options.handler,
        task_root=options.task_root.resolve(),
        memory_mb=options.memory_mb,
        timeout_s=options.timeout_s,
        init_limit_s=options.init_limit_s,
        architecture=options.architecture,
        cpu_from_memory=options.cpu_from_memory,
        environ=function_environ(options.environ, os.environ),
    )


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


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or None as soon as it cannot fit into an event.

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
        if size > MAX_EVENT_BYTES:
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


def _throttled(throttle: Throttle) -> HttpResponse:
    """Lambda's own answer, from its admission; API Gateway would turn it into a 503."""
    return gateway_problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        {"Reason": throttle.reason, "Type": "User", "message": "Rate Exceeded."},
        "All environments are busy. Try again, or raise --max-environments.",
        (b"x-amzn-errortype", b"TooManyRequestsException"),
    )
