"""The HTTP server of the emulator: uvicorn, and where it listens."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coldframe.errors import ColdframeError
from local.front.asgi import Application

_LAST_PORT = 65535

# When the server ends, a client has so long to read its answer.
_GRACE_S = 2
# Requests that still have no answer then are cancelled: none should be, since their environments are stopped.
_GRACE_OF_REQUESTS_S = 30


class CannotListen(ColdframeError):
    """The emulator's address cannot be listened on; the text says what to do."""


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


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens already, so that the address is known to be ours.

    Raises CannotListen when the address is taken or not allowed.
    """
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
