"""A request's body, read and decompressed as it arrives, and no further than it may be long."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

from coldframe.api.compression import Gunzip
from coldframe.api.contract import content_encoding
from coldframe.config import Settings
from coldframe.errors import TooLarge
from functions.server.room import Place

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

_PIECE_BYTES = 65_536  # of a body that is decompressed; between pieces others have their turn


class CallerLeft(Exception):
    """The connection ended before the request, or before its answer."""


async def read_body(receive: Receive, headers: Mapping[str, str], settings: Settings, place: Place) -> bytes:
    """The whole body, without gzip. Each piece takes its room before the next one is made.

    Raises CallerLeft, Overloaded, Malformed, or TooLarge as soon as it is known to be too large.
    """
    chunks = _chunks(receive, headers, settings.max_body_bytes)
    if content_encoding(headers) == "gzip":
        gzip = Gunzip(settings.max_decompressed_bytes, _PIECE_BYTES)
        content = [piece async for chunk in chunks async for piece in _kept(gzip.add(chunk), place)]
        gzip.end()
    else:
        content = [piece async for chunk in chunks async for piece in _kept((chunk,), place)]
    return content[0] if len(content) == 1 else b"".join(content)


async def _chunks(receive: Receive, headers: Mapping[str, str], most_bytes: int) -> AsyncIterator[bytes]:
    """The body as it arrives."""
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
        yield chunk


async def _kept(pieces: Iterable[bytes], place: Place) -> AsyncIterator[bytes]:
    for number, piece in enumerate(pieces):
        if number:
            await asyncio.sleep(0)
        place.add(len(piece))
        yield piece
