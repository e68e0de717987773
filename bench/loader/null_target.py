"""A target that does nothing: what a loader measures against it is the loader itself."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import cast

import httptools

_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class _Connection(asyncio.Protocol):
    """Answers each complete request at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._transport.write(_ANSWER)


@contextlib.contextmanager
def null_target() -> Iterator[str]:
    """Its URL, for as long as the `with` block; it runs in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.loader.null_target"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        yield process.stdout.readline().strip() if process.stdout else ""
        process.kill()


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    print(f"http://{host}:{port}/", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(_serve())
