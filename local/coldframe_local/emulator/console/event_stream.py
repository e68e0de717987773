"""`GET /_events`: what happens in the emulator, as server-sent events.

Each event is a whole picture: a snapshot, and the invocations that ended since the one before. So a client
that comes late, or comes back, has missed nothing that it needs.
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Collection
from http import HTTPStatus

import msgspec
from starlette.types import Receive, Send

from coldframe_local.emulator.console import browsers
from coldframe_local.emulator.gateway.http import HttpRequest, HttpResponse, problem
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.lambda_types import InvocationView, Snapshot

PATH = "/_events"

_PAUSE_S = 0.1  # changes within this time share one event
_HEARTBEAT_S = 1.0  # ages, rates and costs change even when nothing happens
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
_WRONG_METHOD = problem(
    HTTPStatus.METHOD_NOT_ALLOWED, f"{PATH} can only be read. Ask with GET.", (b"allow", b"GET")
)


class Event(msgspec.Struct, frozen=True):
    """State that the console draws. run: identifier; a new one means that the emulator was restarted."""

    run: str
    snapshot: Snapshot
    invocations: tuple[InvocationView, ...]


class EventStream:
    """Streams to any number of readers, until each leaves or all are told to.

    names: by which this machine is known; pages of others get nothing.
    """

    def __init__(self, service: LambdaService, names: Collection[str]) -> None:
        self._service = service
        self._names = names
        self._run = uuid.uuid4().hex
        self._closed = asyncio.Event()

    def close(self) -> None:
        """Ends all streams, so that the server need not wait for their readers."""
        self._closed.set()

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """Why there is no stream for this request; None when there is."""
        if request.method != "GET":
            return _WRONG_METHOD
        return browsers.refusal(request.headers, self._names, always=True)

    async def respond(self, receive: Receive, send: Send) -> None:
        """One stream, to its end. receive, send: of ASGI."""
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        tasks = {
            asyncio.create_task(self._write(send)),
            asyncio.create_task(_left(receive)),
            asyncio.create_task(self._wait_until_closed()),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        await send({"type": "http.response.body", "body": b""})

    async def _write(self, send: Send) -> None:
        number = 0
        while True:
            snapshot = self._service.snapshot()
            invocations = self._service.invocations_after(number)
            number = invocations[-1].number if invocations else number
            # A reader that is slow holds this up, and gets fewer events.
            body = _encode(Event(self._run, snapshot, invocations))
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await asyncio.sleep(_PAUSE_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_HEARTBEAT_S - _PAUSE_S):
                    await self._service.changed(snapshot.revision)

    async def _wait_until_closed(self) -> None:
        await self._closed.wait()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _encode(event: Event) -> bytes:
    return b"data: " + msgspec.json.encode(event) + b"\n\n"
