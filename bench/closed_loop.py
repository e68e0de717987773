"""A closed-loop HTTP client that is cheap enough not to be what is measured: keep-alive, one request each."""

from __future__ import annotations

import asyncio
import time

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


class Connection:
    """One keep-alive connection. Use as an async context manager."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port

    async def __aenter__(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def get(self, path: str) -> tuple[int, float]:
        """Status and seconds of one GET; the answer must have a content length."""
        started = time.perf_counter()
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        head = await self._reader.readuntil(_HEAD_END)
        at = head.lower().index(_LENGTH) + len(_LENGTH)
        await self._reader.readexactly(int(head[at : head.index(b"\r\n", at)]))
        return int(head[9:12]), time.perf_counter() - started


async def repeat(host: str, port: int, path: str, requests: int) -> list[float]:
    """Seconds of each of so many requests in a row on one connection.

    Raises RuntimeError for a status other than 200.
    """
    seconds = []
    async with Connection(host, port) as connection:
        for _ in range(requests):
            status, taken = await connection.get(path)
            if status != 200:
                raise RuntimeError(f"{path} answered {status}, expected 200.")
            seconds.append(taken)
    return seconds
