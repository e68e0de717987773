"""A request's body, read and decompressed as it arrives, and no further than it may be long."""

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, NamedTuple

from coldframe.api.compression import Gunzip
from coldframe.config import Settings
from coldframe.contract import content_encoding
from coldframe.errors import TooLarge
from coldframe.server.room import Place

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

_BUDGET = b'"budget_ms"'
_STATED = re.compile(_BUDGET + rb"\s*:\s*([0-9]{1,8})\s*[,}]")
_PIECE_BYTES = 65_536  # of a body that is decompressed; between pieces others have their turn


class Body(NamedTuple):
    """A whole body without gzip, and when its last byte came in, before it was decompressed."""

    content: bytes
    arrived_s: float


class CallerLeft(Exception):
    """The connection ended before the request, or before its answer."""


async def read_body(receive: Receive, headers: Mapping[str, str], settings: Settings, place: Place) -> Body:
    """The whole body, without gzip. Each piece takes its room before the next one is made.

    Raises CallerLeft, Overloaded, Malformed, or TooLarge as soon as it is known to be too large.
    """
    arrived_s = 0.0

    def arrive() -> None:
        nonlocal arrived_s
        arrived_s = time.monotonic()

    chunks = _chunks(receive, headers, settings.max_body_bytes, arrive)
    if content_encoding(headers) == "gzip":
        gzip = Gunzip(settings.max_decompressed_bytes, _PIECE_BYTES)
        content = [piece async for chunk in chunks async for piece in _kept(gzip.add(chunk), place)]
        gzip.end()
    else:
        content = [piece async for chunk in chunks async for piece in _kept((chunk,), place)]
    return Body(content[0] if len(content) == 1 else b"".join(content), arrived_s)


def stated_s(body: bytes) -> float:
    """The `budget_ms` of a JSON body that is not decoded yet, in seconds; infinity: none is found.

    In a JSON text these bytes are a key: within a string, quotes are escaped. A key that is spelled with
    escapes is not found; decoding finds it later.
    """
    place = body.rfind(_BUDGET)
    found = _STATED.match(body, place) if place >= 0 else None
    return (found and int(found[1]) / 1e3) or math.inf


async def _chunks(
    receive: Receive, headers: Mapping[str, str], most_bytes: int, arrive: Callable[[], None]
) -> AsyncIterator[bytes]:
    """The body as it arrives. arrive: called with the last of it."""
    declared = headers.get("content-length", "0")  # digits: whoever parses HTTP has seen to it
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


async def _kept(pieces: Iterable[bytes], place: Place) -> AsyncIterator[bytes]:
    for number, piece in enumerate(pieces):
        if number:
            await asyncio.sleep(0)
        place.add(len(piece))
        yield piece
