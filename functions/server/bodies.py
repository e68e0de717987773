"""A request's body, read as it arrives, and no further than it may be long."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from coldframe.errors import TooLarge
from functions.server.room import Place

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class CallerLeft(Exception):
    """The connection ended before the request, or before its answer."""


async def read_body(receive: Receive, headers: Mapping[str, str], most_bytes: int, place: Place) -> bytes:
    """The whole body. Raises CallerLeft, Overloaded, or TooLarge as soon as it is known to be too large."""
    declared = headers.get("content-length", "0")  # digits: whoever parses HTTP has seen to it
    if int(declared) > most_bytes:
        raise TooLarge(f"The body has {declared} bytes, expected at most {most_bytes}. Send it in parts.")
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerLeft
        chunk = message.get("body", b"")
        if place.bytes + len(chunk) > most_bytes:
            raise TooLarge(f"The body has more than {most_bytes} bytes. Send it in parts.")
        place.add(len(chunk))
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)
