"""Sends many requests at once to the emulator's own port, each on a connection of its own.

The console asks for it, because a browser opens six connections to one host and makes other requests wait.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

import msgspec
from msgspec import Meta

_BROKEN = 0  # in place of a status
_MOST = 400  # each takes two descriptors of this process, which usually has 1024


class Burst(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requests to send, and their number. path: with its query, not a path of the emulator. body: JSON."""

    count: Annotated[int, Meta(ge=1, le=_MOST)]
    path: Annotated[str, Meta(pattern=r"^/(?!_)[!-~]*\Z")]
    body: str
    method: Annotated[str, Meta(pattern=r"^[A-Z]{1,16}\Z")] = "POST"


class Answered(msgspec.Struct, frozen=True):
    """How one request ended. status: 0 when the connection broke."""

    status: int
    latency_ms: float


class BurstReport(msgspec.Struct, frozen=True):
    """How all of them ended, in the order sent. total_ms: from the first request to the last answer."""

    total_ms: float
    answers: list[Answered]


async def send_burst(burst: Burst, host: str, port: int) -> BurstReport:
    """Sends all requests at the same time and waits for every answer."""
    request = _request(burst, host, port)
    started_s = time.perf_counter()
    answers = await asyncio.gather(*(_send(request, host, port) for _ in range(burst.count)))
    return BurstReport((time.perf_counter() - started_s) * 1000, answers)


def _request(burst: Burst, host: str, port: int) -> bytes:
    body = burst.body.encode()
    name = f"[{host}]" if ":" in host else host
    head = (
        f"{burst.method} {burst.path} HTTP/1.1\r\nhost: {name}:{port}\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


async def _send(request: bytes, host: str, port: int) -> Answered:
    started_s = time.perf_counter()
    try:
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(request)
            answer = await reader.read()
        finally:
            writer.close()
        status = int(answer.split(b" ", 2)[1])
    except (OSError, IndexError, ValueError):
        status = _BROKEN
    return Answered(status, (time.perf_counter() - started_s) * 1000)
