"""The HTTP server of the emulator: uvicorn, patient with its clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from http import HTTPStatus

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coldframe.server.connection import NOT_HTTP, last_words
from local.emulator.front.asgi import Application

# Time that a client has to read its answer when the server ends.
_GRACE_S = 2
# Requests that still have no answer then are cancelled: none should be, since their environments are stopped.
_GRACE_OF_REQUESTS_S = 30


READ_TIMEOUT_S = 30
"""Time for a request to arrive, head and body, and for a new connection to begin one."""


class Connection(HttpToolsProtocol):
    """One client's connection: uvicorn's, which is patient with clients that only half leave.

    A client that sends nothing, or a request that never ends, is given up: uvicorn would keep it for ever.
    """

    _timer: asyncio.TimerHandle | None = None
    _is_reading = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_idle = self.cycle is None or self.cycle.response_complete
        if self._timer is None and is_idle and not self._is_reading:
            self._start_timer()  # of bytes that begin no request, for which uvicorn stops its own

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_reading = True
        self._start_timer()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_reading = False
        self._stop_timer()

    def send_400_response(self, msg: str) -> None:
        """Callback of uvicorn for bytes that are not HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, NOT_HTTP)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(READ_TIMEOUT_S, self._time_is_over)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_is_over(self) -> None:
        self._timer = None
        if not self._is_reading or (self.cycle is not None and self.cycle.response_started):
            self.transport.close()
        else:
            late = f"The request did not arrive within {READ_TIMEOUT_S} s. Send it again, without pauses."
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, late)

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """The last answer on this connection."""
        self.transport.write(last_words(status, detail))
        self.transport.close()

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio takes a bool, uvicorn says None
        """The client sends no more. It may still read, as `nc -N` does: whole requests are answered first."""
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.response_complete:
            return False  # nothing to answer: the connection is closed
        cycle.keep_alive = False
        return True

    def shutdown(self) -> None:
        """The server ends: nobody gets an answer to half a request, nor takes for ever to read one."""
        if self.cycle is not None and self.cycle.more_body:
            self.transport.close()
        else:
            super().shutdown()
        self.loop.call_later(_GRACE_S, self._give_up)

    def _give_up(self) -> None:
        """Ends a connection whose client does not read. Who has no answer yet is waited for."""
        if self.cycle is None or self.cycle.response_started or self.transport.is_closing():
            self.transport.abort()
        else:
            self.loop.call_later(_GRACE_S, self._give_up)


class Server(uvicorn.Server):
    """uvicorn without its signal handlers: `run` stops the environments before the server."""

    def __init__(self, application: Application) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=Connection,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_OF_REQUESTS_S,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield
