"""The HTTP server of the emulator: uvicorn, patient with its clients."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from local.front.asgi import Application

# When the server ends, a client has so long to read its answer.
_GRACE_S = 2
# Requests that still have no answer then are cancelled: none should be, since their environments are stopped.
_GRACE_OF_REQUESTS_S = 30


class Connection(HttpToolsProtocol):
    """One client's connection: uvicorn's, which is patient with clients that only half leave."""

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
