"""The ASGI application of the emulator: reads a whole request, calls its handler, sends the answer."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from coldframe.server.connection import Connection
from coldframe_local.emulator.console.console import lead_browser
from coldframe_local.emulator.front.handlers import Handlers
from coldframe_local.emulator.gateway.http import HttpRequest, HttpResponse

# Their answers end with their headers: a body would be read as the start of the next answer.
# https://www.rfc-editor.org/rfc/rfc9112#section-6.3
_WITHOUT_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class PatientConnection(Connection):
    """One client's connection, which answers clients that send no more and still read, as `nc -N` does."""

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio takes a bool, uvicorn says None
        """Keeps the connection open until whole requests are answered."""
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.response_complete:
            return False
        cycle.keep_alive = False
        return True


class Application:
    """Serves the handlers. on_answer: called after each answer of a handler."""

    def __init__(self, handlers: Handlers, on_answer: Callable[[], None]) -> None:
        self._handlers = handlers
        self._on_answer = on_answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI gives it."""
        try:
            response = await self._respond(scope, receive)
        except ClientDisconnect:  # half a body is not a request
            return
        if response is None:
            await self._handlers.events.respond(receive, send)
        else:
            await _send(response, send)

    async def _respond(self, scope: Scope, receive: Receive) -> HttpResponse | None:
        """The answer of the path's handler; None where the stream of events is to follow."""
        path = scope["raw_path"].decode("latin-1")
        if self._handlers.is_events(path):
            return self._handlers.events.refusal(_request(scope, b""))
        handler = self._handlers.of(path, scope["headers"])
        body = await _read_body(Request(scope, receive), handler.max_body_bytes)
        if body is None:
            return handler.too_large()
        request = _request(scope, body)
        response = lead_browser(request, await handler.respond(request))
        self._on_answer()
        return response


async def _send(response: HttpResponse, send: Send) -> None:
    headers, body = response.headers, response.body
    if response.status in _WITHOUT_BODY:
        body = b""
    else:
        headers = [*headers, (b"content-length", str(len(body)).encode("ascii"))]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _read_body(request: Request, max_bytes: int) -> bytes | None:
    """The whole body, or None as soon as it is too large. Raises ClientDisconnect."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            return None
    return bytes(body)


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
