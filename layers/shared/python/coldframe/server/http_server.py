"""Accepts connections, and ends them without losing an accepted request."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from functools import partial

from uvicorn.config import Config
from uvicorn.server import ServerState

from coldframe.server.connection import Connection

_DATE_S = 1.0  # how often the header `date` is renewed


class HttpServer:
    """Connections of one listening socket. Used in the event loop's thread."""

    def __init__(
        self,
        application: Callable[..., Awaitable[None]],
        listener: socket.socket,
        keep_alive_s: int,
        read_timeout_s: int,
        connection: type[Connection] = Connection,
        log_level: str = "critical",
    ) -> None:
        """log_level: least level of uvicorn's own messages."""
        self._listener = listener
        self._protocol = partial(connection, read_timeout_s=read_timeout_s)
        self._config = Config(
            application,
            http=connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level=log_level,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=keep_alive_s,
        )
        self._state = ServerState()
        # While this socket is open, the kernel accepts connections: none is reset unanswered.
        self._spare = listener.dup()

    async def start(self) -> None:
        """Accepts connections from now on."""
        self._config.load()
        self._loop = asyncio.get_running_loop()
        self._server = await self._loop.create_server(
            self._connection, sock=self._listener, backlog=socket.SOMAXCONN
        )
        self._dates = asyncio.create_task(self._keep_date())

    async def stop_accepting(self) -> None:
        """Accepts no further connection. The application answers clients still in the accept queue."""
        self._server.close()
        self._spare.setblocking(False)
        while True:
            try:
                accepted, _ = self._spare.accept()
            except OSError:  # no wait, or the waiting task was cancelled
                break
            await self._loop.connect_accepted_socket(self._connection, accepted)
        self._spare.close()
        for connection in list(self._state.connections):
            connection.shutdown()

    async def close(self, grace_s: float) -> int:
        """Waits for open connections, after `stop_accepting`. Returns how many had to be cut."""
        deadline_s = time.monotonic() + grace_s
        while (self._state.connections or self._state.tasks) and time.monotonic() < deadline_s:
            await asyncio.sleep(_POLL_S)
        unanswered = len(self._state.tasks)
        for connection in list(self._state.connections):
            connection.transport.abort()
        self._dates.cancel()
        return unanswered

    def _connection(self) -> Connection:
        return self._protocol(self._config, self._state, self._loop)

    async def _keep_date(self) -> None:
        while True:
            self._state.default_headers = [(b"date", formatdate(time.time(), usegmt=True).encode())]
            await asyncio.sleep(_DATE_S)


_POLL_S = 0.02
