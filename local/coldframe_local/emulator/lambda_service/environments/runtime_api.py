"""The Runtime API of one execution environment: what AWS's own client polls for invocations.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html (read 2026-11).

Each environment gets a listening socket of its own. `AWS_LAMBDA_RUNTIME_API` may hold
only host:port: awslambdaric's C client would take a path after it, but `init/error` goes
through http.client, which refuses one. So the port tells the environments apart.

A protocol on httptools instead of an ASGI server: six routes, no middleware, and `next`
is answered by one write into the waiting connection.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, cast

import httptools
import msgspec

from coldframe.capacity.limits import PAYLOAD
from coldframe_local.emulator.lambda_service.report import Outcome

_PREFIX = "/2018-06-01/runtime/"
_NEXT = _PREFIX + "invocation/next"
_INVOCATION = _PREFIX + "invocation/"
_INIT_ERROR = _PREFIX + "init/error"
_RESTORE_NEXT = _PREFIX + "restore/next"
_RESTORE_ERROR = _PREFIX + "restore/error"
_ERROR_TYPE_HEADER = b"lambda-runtime-function-error-type"

# The 100 bytes on top are what Lambda's own message names; they may be used.
# Source: https://zaccharles.medium.com/deep-dive-lambdas-response-payload-size-limit-8aedba9530ed, and
# https://github.com/DataBiosphere/azul/issues/8192 (2026-07-28), read 2026-11-21.
MAX_RESULT_BYTES = PAYLOAD.value + 100
RESULT_TOO_LARGE = "Function.ResponseSizeTooLarge"


@dataclass(frozen=True, slots=True)
class Invocation:
    """Invocation that `next` returns.

    deadline_ms: milliseconds since the epoch. client_context: JSON in ASCII; "" for none.
    """

    request_id: str
    event: bytes
    deadline_ms: int
    invoked_function_arn: str
    trace_id: str
    client_context: str = ""


class RuntimeListener(Protocol):
    """Receiver of the runtime client's messages."""

    def polled(self) -> None:
        """The client asks for the next invocation: init is over, or the last one is."""

    def loaded(self) -> None:
        """SnapStart only: the function is loaded, and its snapshot may be taken."""

    def restore_failed(self, error_type: str, payload: bytes) -> None:
        """A hook that runs after a restore raised; the process exits next."""

    def responded(self, request_id: str, payload: bytes) -> bool:
        """The function returned. False when that is not the invocation it works on."""

    def failed(self, request_id: str, error_type: str, payload: bytes) -> bool:
        """The function raised. False when that is not the invocation it works on."""

    def init_failed(self, error_type: str, payload: bytes) -> None:
        """The function's module could not be loaded; the process exits next."""


class RuntimeApi:
    """Serves the Runtime API to one process and tells the listener what that process says."""

    def __init__(self, listener: RuntimeListener) -> None:
        self._listener = listener
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._poll: _Connection | None = None
        self._snapshot: _Connection | None = None

    async def open(self) -> str:
        """Listens on a free loopback port; returns what belongs in AWS_LAMBDA_RUNTIME_API."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    def close(self) -> None:
        """Ends the long poll and every connection; the client gives up and its process exits."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()

    def offer(self, invocation: Invocation) -> None:
        """Answers the waiting `next`. Only for an environment that is ready, thus waiting."""
        if self._poll is None:
            return  # The client is gone; whoever watches its process will say so.
        connection, self._poll = self._poll, None
        connection.reply(HTTPStatus.OK, invocation.event, _next_headers(invocation))

    def restore(self) -> None:
        """Answers the waiting `restore/next`: the client continues, as in a restored snapshot."""
        if self._snapshot is not None:
            connection, self._snapshot = self._snapshot, None
            connection.reply(HTTPStatus.OK, b"")

    def connected(self, connection: _Connection) -> None:
        """The client opened a connection."""
        self._connections.add(connection)

    def disconnected(self, connection: _Connection) -> None:
        """The client, or `close`, ended a connection."""
        self._connections.discard(connection)
        if self._poll is connection:
            self._poll = None
        if self._snapshot is connection:
            self._snapshot = None

    def handle(self, connection: _Connection, request: _Request) -> None:
        """Routes one request to the listener and answers it, both `next` excepted."""
        method, path = request.method, request.path
        if method == "GET" and path == _NEXT:
            self._poll = connection
            self._listener.polled()
        elif method == "POST" and path == _INIT_ERROR:
            connection.reply(*_ACCEPTED)  # first, because the listener ends the environment
            self._listener.init_failed(request.error_type, bytes(request.body))
        elif method == "GET" and path == _RESTORE_NEXT:
            self._snapshot = connection
            self._listener.loaded()
        elif method == "POST" and path == _RESTORE_ERROR:
            connection.reply(*_ACCEPTED)
            self._listener.restore_failed(request.error_type, bytes(request.body))
        elif method == "POST" and path.startswith(_INVOCATION):
            connection.reply(*self._result(request))
        else:
            connection.reply(*_NOT_FOUND)

    def _result(self, request: _Request) -> tuple[HTTPStatus, bytes]:
        request_id, _, kind = request.path.removeprefix(_INVOCATION).partition("/")
        if kind == "error":
            is_current = self._listener.failed(request_id, request.error_type, bytes(request.body))
        elif kind != "response":
            return _NOT_FOUND
        elif request.too_large:
            self._listener.failed(request_id, RESULT_TOO_LARGE, _RESULT_TOO_LARGE)
            return _TOO_LARGE
        else:
            is_current = self._listener.responded(request_id, bytes(request.body))
        return _ACCEPTED if is_current else _INVALID_REQUEST_ID


class _Request:
    """A request while it is being read."""

    __slots__ = ("body", "error_type", "expects_continue", "method", "path", "too_large")

    def __init__(self) -> None:
        self.method = ""
        self.path = ""
        self.error_type = "Runtime.Unknown"
        self.expects_continue = False
        self.body = bytearray()
        self.too_large = False


class _Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive on one connection of the runtime client."""

    def __init__(self, api: RuntimeApi) -> None:
        self._api = api
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.WriteTransport | None = None
        self._request = _Request()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast: uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.WriteTransport", transport)
        self._api.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._api.disconnected(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()

    def on_message_begin(self) -> None:
        self._request = _Request()

    def on_url(self, url: bytes) -> None:
        self._request.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        lower = name.lower()
        if lower == _ERROR_TYPE_HEADER:
            self._request.error_type = value.decode("latin-1")
        elif lower == b"expect":
            self._request.expects_continue = True

    def on_headers_complete(self) -> None:
        self._request.method = self._parser.get_method().decode("ascii")
        if self._request.expects_continue:
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, chunk: bytes) -> None:
        request = self._request
        request.too_large = request.too_large or len(request.body) + len(chunk) > MAX_RESULT_BYTES
        if not request.too_large:
            request.body += chunk

    def on_message_complete(self) -> None:
        self._api.handle(self, self._request)

    def reply(self, status: HTTPStatus, body: bytes, headers: str = "") -> None:
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        )
        self._write(head.encode("latin-1") + body)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


def _next_headers(invocation: Invocation) -> str:
    context = invocation.client_context
    client = f"Lambda-Runtime-Client-Context: {context}\r\n" if context else ""
    return (
        f"Lambda-Runtime-Aws-Request-Id: {invocation.request_id}\r\n"
        f"Lambda-Runtime-Deadline-Ms: {invocation.deadline_ms}\r\n"
        f"Lambda-Runtime-Invoked-Function-Arn: {invocation.invoked_function_arn}\r\n"
        f"Lambda-Runtime-Trace-Id: {invocation.trace_id}\r\n"
        f"{client}"
    )


def _error(status: HTTPStatus, error_type: str, message: str) -> tuple[HTTPStatus, bytes]:
    return status, msgspec.json.encode({"errorMessage": message, "errorType": error_type})


_RESULT_TOO_LARGE = Outcome.error(
    RESULT_TOO_LARGE,
    f"Response payload size exceeded maximum allowed payload size ({MAX_RESULT_BYTES} bytes).",
).payload
_ACCEPTED = HTTPStatus.ACCEPTED, b'{"status":"OK"}\n'
_NOT_FOUND = _error(HTTPStatus.NOT_FOUND, "NotFound", "The Runtime API has no such route")
_INVALID_REQUEST_ID = _error(HTTPStatus.BAD_REQUEST, "InvalidRequestID", "Invalid request ID")
_TOO_LARGE = _error(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "RequestEntityTooLarge",
    f"Exceeded maximum allowed payload size ({MAX_RESULT_BYTES} bytes).",
)
