"""An HTTP/1.1 client that only posts, and so takes little of the time that a loader measures.

Connections are kept alive; each carries one request at a time. Parsing is httptools'.
"""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

import httptools

# select(), which the loader uses for its timer, takes file numbers up to 1024.
_MAX_CONNECTIONS = 960
_JSON = {"content-type": "application/json"}


class NoAnswer(Exception):
    """The connection ended before the answer did."""


class HttpClient:
    """Posts to one URL, JSON unless told; more than 960 requests at once wait for a connection."""

    def __init__(self, url: str, headers: Mapping[str, str] = _JSON) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._head = (
            f"POST {parts.path or '/'} HTTP/1.1\r\nhost: {parts.netloc}\r\n{lines}content-length: "
        ).encode()
        self._idle: list[_Connection] = []
        self._free = asyncio.Semaphore(_MAX_CONNECTIONS)

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer. Raises OSError or NoAnswer where there is none."""
        async with self._free:
            connection = self._waiting() or await self._connect()
            try:
                answer = await connection.ask(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
            except BaseException:
                connection.close()
                raise
            if connection.reusable:
                self._idle.append(connection)
            else:
                connection.close()
            return answer

    def close(self) -> None:
        """Closes every idle connection."""
        for connection in self._idle:
            connection.close()

    def _waiting(self) -> "_Connection | None":
        """An idle connection that the other side has not closed."""
        while self._idle:
            if (connection := self._idle.pop()).reusable:
                return connection
        return None

    async def _connect(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, self._host, self._port)
        return connection


class _Connection(asyncio.Protocol):
    """One connection, and the answer that it waits for."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self.reusable = False

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """The answer to one request, sent as it is."""
        if self._transport is None or self._transport.is_closing():
            raise NoAnswer
        self._parser, self._body, self.reusable = httptools.HttpResponseParser(self), [], False
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # of TCP, so it can be written to

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()

    def on_body(self, chunk: bytes) -> None:
        self._body.append(chunk)

    def on_message_complete(self) -> None:
        self.reusable = self._parser.should_keep_alive()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), b"".join(self._body)))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or NoAnswer())
        self.reusable = False
