"""One client's connection: uvicorn's, with limits for clients that are slow, endless, or disconnected.

uvicorn 0.54 with httptools limits neither the size of a request's head nor the time that a request takes to
arrive; and it closes a connection whose client still sends, which may cost that client the answer.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from http import HTTPStatus
from typing import Any

import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

MAX_HEAD_BYTES = 65_536
LINGER_S = 2.0
"""After a refusal, time in which the client may finish sending before the connection is closed."""
LAST_WORDS_S = 0.5
"""While the server leaves, time in which a request arriving on an idle connection still gets a refusal."""


NOT_HTTP = "This is not HTTP/1.1, and TLS does not end here. Send a plain HTTP request."


def last_words(status: HTTPStatus, detail: str) -> bytes:
    """A whole response, a problem (RFC 9457), after which the connection is closed."""
    problem = {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}
    body = msgspec.json.encode(problem)
    head = (
        f"HTTP/1.1 {status:d} {status.phrase}\r\ncontent-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


class _Reading(Enum):
    NOTHING = 0
    HEAD = 1
    BODY = 2


class Connection(HttpToolsProtocol):
    """One client's connection. Used only in the event loop's thread."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        loop: asyncio.AbstractEventLoop,
        read_timeout_s: float,
    ) -> None:
        super().__init__(config, server_state, {}, loop)
        self._read_timeout_s = read_timeout_s
        self._reading = _Reading.NOTHING
        self._head_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._is_lingering = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_lingering:
            return
        if self._reading is not _Reading.BODY:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._reading is _Reading.BODY:
            return
        if self._head_bytes > MAX_HEAD_BYTES and self._reading is _Reading.HEAD:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"The head has more than {MAX_HEAD_BYTES} bytes. Send fewer or shorter headers.",
            )
        elif self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._await_request()  # bytes that do not begin a request

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading = _Reading.HEAD
        self._set_timer(self._read_timeout_s)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._reading, self._head_bytes = _Reading.BODY, 0
        self.cycle.transport = LingeringTransport(self)  # type: ignore[assignment]
        self._set_timer(self._read_timeout_s)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._reading = _Reading.NOTHING
        self._stop_timer()

    def on_response_complete(self) -> None:
        if self._is_lingering:
            self.server_state.total_requests += 1
        else:
            super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not read, and the transport's buffer is full."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._read_timeout_s, self.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def close_after_reading(self) -> None:
        """Closes the connection. If the client still sends, waits before that, so that it can read its
        answer.
        """
        if self._reading is not _Reading.BODY or not self.transport.can_write_eof():
            self._close()
            return
        self._is_lingering = True
        self.transport.write_eof()
        self.flow.resume_reading()
        self._set_timer(LINGER_S)

    def shutdown(self) -> None:
        """The server leaves: accepted requests are answered, then the connection is closed."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        elif not self._is_lingering:
            self._set_timer(LAST_WORDS_S)

    def abort(self) -> None:
        """Closes the connection at once."""
        self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def _await_request(self) -> None:
        self._set_timer(self._read_timeout_s)

    def _set_timer(self, after_s: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(after_s, self._time_is_over)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_is_over(self) -> None:
        self._timer = None
        is_answered = self.cycle is not None and self.cycle.response_started
        if self._reading is _Reading.NOTHING or self._is_lingering or is_answered:
            self._close()
        else:
            self._refuse(
                HTTPStatus.REQUEST_TIMEOUT,
                f"The request did not arrive within {self._read_timeout_s} s. Send it again, without pauses.",
            )

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for bytes that are not HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, NOT_HTTP)

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Sends the last answer on this connection, to a request that has not wholly arrived."""
        self._stop_timer()
        self.transport.write(last_words(status, detail))
        self._close()

    def _close(self) -> None:
        """Closes the connection once all is sent, or when the client reads too slowly."""
        if self.transport.get_write_buffer_size():
            self.loop.call_later(self._read_timeout_s, self.abort)
        self.transport.close()


class LingeringTransport:
    """Transport for a request's cycle. Closing it waits until the client can read its answer (RFC 9112,
    9.6).
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        self._connection.transport.write(data)

    def is_closing(self) -> bool:
        return self._connection.transport.is_closing()

    def close(self) -> None:
        self._connection.close_after_reading()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection.transport, name)
