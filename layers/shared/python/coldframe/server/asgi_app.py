"""The ASGI application: requests in from HTTP, to `Api` in a thread, replies out.

It answers errors before a request is read, and refuses requests while the server is not ready. `Api` answers
all others, as in the Lambda function.
"""

import re
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import fastapi
from msgspec.structs import replace
from starlette.types import Message, Receive, Scope, Send

from coldframe.api.access import ANYONE, by_token
from coldframe.api.api import Api, Reply, Request
from coldframe.api.documented import documented
from coldframe.api.inference_schemas import ServerLive
from coldframe.api.messages import json_reply, log_record, problem_reply
from coldframe.api.openapi import openapi
from coldframe.api.operations import FEEDBACK_OPERATIONS, JOB_OPERATIONS, OPERATIONS
from coldframe.api.routing import Router
from coldframe.errors import NotReady, RequestError
from coldframe.server.bodies import CallerLeft, read_body
from coldframe.server.facts import HEALTH, LIVE, METRICS, PROBES, READY
from coldframe.server.intake import Intake, Slot
from coldframe.server.lifecycle import Lifecycle, State
from coldframe.server.metrics import Metrics
from coldframe.server.settings import ServerSettings
from coldframe.server.threads import Threads
from coldframe.server.tokens import Tokens
from coldframe.server.updating import Loaded, Served
from coldframe.timing import StartMark, log_line

_ID_HEADER = "x-request-id"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=-]{0,127}")
_CLOSE = {"connection": "close"}
_REQUEST = "coldframe.request"
_SOON = {"retry-after": "1"}
_WHY = {
    State.LOADING: "The server is loading its models. Send the request again in a moment.",
    State.LEAVING: "The server is about to end. Send requests to another one.",
    State.REFUSING: "The server is ending, and accepts no further request. Send it to another one.",
}


class AsgiApp:
    """One server's application, in the event loop's thread; `Api` answers in threads of `pool`."""

    def __init__(
        self,
        settings: ServerSettings,
        tokens: Tokens,
        lifecycle: Lifecycle,
        metrics: Metrics,
        log: Callable[[str], None],
        pool: Executor,
    ) -> None:
        self._settings = settings
        self._tokens = tokens
        self._lifecycle = lifecycle
        self._metrics = metrics
        self._log = log
        self._threads = Threads(pool, settings.limits(), self._expected_wait_s, metrics.late.inc)
        self._served: Served | None = None
        self._access = by_token(PROBES) if tokens else ANYONE
        self.intake = Intake(
            settings.queue_requests, settings.queue_bytes, metrics.hold, self._expected_wait_s
        )
        routes = [*OPERATIONS, *JOB_OPERATIONS, *FEEDBACK_OPERATIONS, ("GET", METRICS)]
        self._router = Router(dict.fromkeys(routes, _no_handler))

    def prepare(self, loaded: Loaded) -> Served:
        """Models with their API and its description, for `open`. May run in any thread."""
        api = Api(loaded.models, loaded.settings, StartMark(is_warm=True), self._log)
        return Served(api, loaded, openapi(api.models, api.settings, self._access))

    def open(self, served: Served) -> Served | None:
        """Makes these models answer from now on. Returns the models that answered before."""
        before, self._served = self._served, served
        if before is None:
            self._pages = documented(served.api, self._endpoint, self._access)
            self._pages.openapi = self._describe  # type: ignore[method-assign]
        return before

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI defines it."""
        arrived_s = time.monotonic()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request = Request(
            scope["method"],
            scope["path"],
            headers,
            request_id=request_id(headers.get(_ID_HEADER)),
            arrived_s=arrived_s,
        )
        try:
            reply = await self._answer(request, receive)
            if reply is None:
                status, log = await self._show_page(request, scope, receive, send), {}
            else:
                status, log = reply.status, reply.log
                await _send(reply, request.request_id, send)
        except CallerLeft:
            self._metrics.left.inc()
            return
        route = self._router.pattern(request.path) or "other"
        self._metrics.answered(request.method, route, status, time.monotonic() - arrived_s, log)

    async def _answer(self, request: Request, receive: Receive) -> Reply | None:
        """The reply; None for pages that FastAPI shows."""
        try:
            if not (request.method == "GET" and request.path in PROBES):
                principal = self._tokens.principal(request.headers.get("authorization"))
                request = replace(request, principal=principal)
            if request.method == "GET" and request.path in (LIVE, METRICS):
                return self._live() if request.path == LIVE else self._show_metrics()
            api = self._admitted(request).api
            if request.method == "GET" and request.path in (READY, HEALTH):
                return api.answer(replace(request, is_probe=True))  # at once, before other work
            if not api.answers(request.method, request.path):
                return Reply(302, b"", {"location": "/docs"}) if _is_browser_at_root(request) else None
            with self.intake.request() as slot:
                return await self._work(request, receive, slot)
        except RequestError as exc:
            return self._refuse(request, exc)

    def _admitted(self, request: Request) -> Served:
        """The models that answer. Raises NotReady without any, and for a readiness check while readiness is
        false.
        """
        state = self._lifecycle.state
        asks_readiness = request.path == HEALTH or request.path.endswith("/ready")
        is_refused = not self._lifecycle.accepts or (asks_readiness and state is not State.READY)
        if self._served is None or is_refused:
            closing = _CLOSE if state is State.REFUSING else {}
            raise NotReady(_WHY[state], _SOON | closing)
        self._check_device()
        return self._served

    def _check_device(self) -> None:
        """Raises NotReady once passes have ended for good: only another process can run any."""
        if self._served is not None:
            self._served.loaded.driver.check()

    def _live(self) -> Reply:
        self._check_device()
        return json_reply(ServerLive(True))

    async def _work(self, request: Request, receive: Receive, slot: Slot) -> Reply:
        body = await read_body(receive, request.headers, self._settings, slot)
        whole = replace(request, body=body.content, is_decompressed=True)
        assert self._served is not None  # noqa: S101 - the request was admitted
        with self._served.request() as api:  # models may have been exchanged while the body arrived
            # After the body, `receive` returns early for one reason: the caller hung up.
            return await self._threads.answer(api.answer, whole, receive(), body.arrived_s)

    def _expected_wait_s(self) -> float:
        return 0.0 if self._served is None else self._served.loaded.driver.stats().expected_wait_s

    async def _show_page(self, request: Request, scope: Scope, receive: Receive, send: Send) -> int:
        """Documentation, or `Api`'s answer about an unknown route. Returns the status."""
        status = 0

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], _pair(_ID_HEADER, request.request_id)]
            await send(message)

        await self._pages({**scope, _REQUEST: request}, receive, note)
        return status

    async def _endpoint(self, request: fastapi.Request) -> fastapi.Response:
        """Handles paths without a page of FastAPI."""
        assert self._served is not None  # noqa: S101 - pages are there since `open`
        reply = self._served.api.answer(request.scope[_REQUEST])
        return fastapi.Response(reply.body, reply.status, reply.headers | _after(request.scope[_REQUEST]))

    def _describe(self) -> dict[str, Any]:
        """The description of the models that answer now."""
        assert self._served is not None  # noqa: S101 - pages are there since `open`
        return self._served.description

    def _show_metrics(self) -> Reply:
        self._metrics.ready.set(self._lifecycle.is_ready)
        body, content_type = self._metrics.render()
        return Reply(200, body, {"content-type": content_type})

    def _refuse(self, request: Request, error: RequestError) -> Reply:
        """Logged like any other request. If the request has not wholly arrived, its connection is closed."""
        self._metrics.refused(type(error).__name__)
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else None
        reply = problem_reply(error, request.path, cause)
        reply.headers.update(_after(request))
        if self._settings.log_level != "off":
            path = self._router.pattern(request.path) or "other"
            arrived_s = time.monotonic() if request.arrived_s is None else request.arrived_s
            record = log_record(request, path, reply.status, "warm", time.monotonic() - arrived_s)
            self._log(log_line(**record, **reply.log))
        return reply


def request_id(header: str | None) -> str:
    """The caller's id if a log can show it unchanged, else a new one."""
    return header if header is not None and _ID.fullmatch(header) else uuid.uuid4().hex


def _after(request: Request) -> dict[str, str]:
    """Headers about the connection, after an answer to a request whose body is not read."""
    has_body = "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"
    return _CLOSE if has_body else {}


def _is_browser_at_root(request: Request) -> bool:
    """Whether somebody opened the address that the server prints."""
    wants_page = "text/html" in request.headers.get("accept", "")
    return (request.method, request.path) == ("GET", "/") and wants_page


def _no_handler(_: Request) -> Reply:
    raise NotImplementedError("Give this table the names of routes.")


async def _send(reply: Reply, name: str, send: Send) -> None:
    headers = [_pair(*header) for header in reply.headers.items()]
    headers += [_pair("content-length", str(len(reply.body))), _pair(_ID_HEADER, name)]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def _pair(name: str, value: str) -> tuple[bytes, bytes]:
    return name.encode("latin-1"), value.encode("latin-1")
