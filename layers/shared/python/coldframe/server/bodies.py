"""A request's body, read and decompressed as it arrives, up to its limit."""

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import NamedTuple

from starlette.types import Receive

from coldframe.api.compression import Gunzip
from coldframe.api.messages import content_encoding
from coldframe.config import Settings
from coldframe.errors import TooLarge
from coldframe.server.intake import Slot

_BUDGET = b'"budget_ms"'
_STATED = re.compile(_BUDGET + rb"\s*:\s*([0-9]{1,8})\s*[,}]")
_PIECE_BYTES = 65_536  # of a decompressed body; other requests run between pieces


class Body(NamedTuple):
    """A whole decompressed body, and the moment when its last byte arrived."""

    content: bytes
    arrived_s: float


class CallerLeft(Exception):
    """The connection ended before the request, or before its answer."""


async def read_body(receive: Receive, headers: Mapping[str, str], settings: Settings, slot: Slot) -> Body:
    """The whole body, decompressed. Each piece takes its share of the intake before the next is read.

    Raises CallerLeft, Overloaded, Malformed, or TooLarge as soon as the limit is exceeded.
    """
    arrived_s = 0.0

    def arrive() -> None:
        nonlocal arrived_s
        arrived_s = time.monotonic()

    chunks = _chunks(receive, headers, settings.max_body_bytes, arrive)
    if content_encoding(headers) == "gzip":
        gzip = Gunzip(settings.max_decompressed_bytes, _PIECE_BYTES)
        content = [piece async for chunk in chunks async for piece in _kept(gzip.add(chunk), slot)]
        gzip.end()
    else:
        content = [piece async for chunk in chunks async for piece in _kept((chunk,), slot)]
    return Body(content[0] if len(content) == 1 else b"".join(content), arrived_s)


def stated_s(body: bytes) -> float:
    """The `budget_ms` of a JSON body before it is decoded, in seconds; infinity if there is none.

    In a JSON text these bytes are a key: within a string, quotes are escaped. A key spelled with escapes is
    missed here, and found when the body is decoded.
    """
    place = body.rfind(_BUDGET)
    match = _STATED.match(body, place) if place >= 0 else None
    return (match and int(match[1]) / 1e3) or math.inf


async def _chunks(
    receive: Receive, headers: Mapping[str, str], most_bytes: int, arrive: Callable[[], None]
) -> AsyncIterator[bytes]:
    """The body as it arrives. arrive: called at its last byte."""
    declared = headers.get("content-length", "0")  # digits: the HTTP parser has checked
    if int(declared) > most_bytes:
        raise TooLarge(f"The body has {declared} bytes, expected at most {most_bytes}. Send it in parts.")
    arrived_bytes = 0
    has_more = True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerLeft
        chunk, has_more = message.get("body", b""), message.get("more_body", False)
        arrived_bytes += len(chunk)
        if arrived_bytes > most_bytes:
            raise TooLarge(f"The body has more than {most_bytes} bytes. Send it in parts.")
        if not has_more:
            arrive()
        yield chunk


async def _kept(pieces: Iterable[bytes], slot: Slot) -> AsyncIterator[bytes]:
    for number, piece in enumerate(pieces):
        if number:
            await asyncio.sleep(0)
        slot.add(len(piece))
        yield piece
