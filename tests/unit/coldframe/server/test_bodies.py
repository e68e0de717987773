"""Bodies, read and decompressed within the room that there is."""

import asyncio
import gzip
import json
import math
from collections.abc import Sequence
from typing import Any

import pytest

from coldframe.config import Settings
from coldframe.errors import Malformed, Overloaded, TooLarge
from coldframe.server.bodies import CallerLeft, read_body, stated_s
from coldframe.server.intake import Intake

GZIP = {"content-encoding": "gzip"}
ROOM_BYTES = 1_000_000


class Noted(Intake):
    """A room that knows the most bytes it has held."""

    def __init__(self) -> None:
        self.most_bytes = 0
        super().__init__(100, ROOM_BYTES, self._note, lambda: 1.0)

    def _note(self, requests: int, held_bytes: int) -> None:
        self.most_bytes = max(self.most_bytes, held_bytes)


def read(
    intake: Intake, chunks: Sequence[bytes], headers: dict[str, str] | None = None, **limits: int
) -> bytes:
    """What is read of a body that arrives in chunks; after the last one its caller hangs up."""
    left: list[dict[str, Any]] = [{"type": "http.request", "body": one, "more_body": True} for one in chunks]
    left[-1]["more_body"] = False

    async def receive() -> dict[str, Any]:
        return left.pop(0) if left else {"type": "http.disconnect"}

    async def run() -> bytes:
        with intake.request() as place:
            body = await read_body(receive, headers or {}, Settings(**limits), place)  # type: ignore[arg-type]
            return body.content

    return asyncio.run(run())


def test_what_is_decompressed_takes_room() -> None:
    """A small body that would fill the memory is refused when the room is full, and gives its room back."""
    room = Noted()
    with pytest.raises(Overloaded):
        read(room, [gzip.compress(b"\0" * 10_000_000)], GZIP)
    assert 0.9 * ROOM_BYTES < room.most_bytes <= ROOM_BYTES
    assert room.bytes == 0


def test_a_body_is_handed_on_without_gzip() -> None:
    """Compressed or not, in one chunk or in many: the content is the same."""
    content = b'{"text": "Orbit"}' * 9000
    body = gzip.compress(content)
    for chunks, headers in (([body], GZIP), ([body[:50], body[50:], b""], GZIP), ([content], {})):
        assert read(Noted(), chunks, headers) == content


def test_limits_of_one_request() -> None:
    """Too many bytes, compressed or decompressed, are 413, whatever room there is."""
    body = gzip.compress(b"\0" * 5000)
    with pytest.raises(TooLarge, match="more than 4999 bytes when decompressed"):
        read(Noted(), [body], GZIP, max_decompressed_bytes=4999)
    with pytest.raises(TooLarge, match="more than 10 bytes"):
        read(Noted(), [b"x" * 6, b"x" * 6], max_body_bytes=10)
    with pytest.raises(Malformed, match="cut off"):
        read(Noted(), [body[:-4]], GZIP)


def test_a_caller_who_leaves_half_way() -> None:
    """The connection ends before the body does."""
    room = Noted()

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def run() -> None:
        with room.request() as place:
            await read_body(receive, {}, Settings(), place)

    with pytest.raises(CallerLeft):
        asyncio.run(run())


def test_others_have_their_turn_between_pieces() -> None:
    """While a body of ten pieces is decompressed, the event loop does other things nine times."""
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": gzip.compress(b"\0" * 655_360)}

    async def run() -> None:
        counting = asyncio.create_task(count_turns())
        with Noted().request() as place:
            await read_body(receive, GZIP, Settings(), place)
        counting.cancel()

    asyncio.run(run())
    assert turns >= 9


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"budget_ms": 500, "text": "x"}', 0.5),
        ('{"text": "x", "budget_ms" :\n20}', 0.02),
        ('{"budget_ms": 500, "text": "x", "budget_ms": 40}', 0.04),
        (json.dumps({"text": '{"budget_ms": 500}'}), math.inf),
        ('{"text": "budget_ms"}', math.inf),
        ('{"budget_ms": 0, "text": "x"}', math.inf),
        ('{"text": "x"}', math.inf),
    ],
)
def test_time_that_a_body_states(body: str, expected: float) -> None:
    """The key is found wherever it stands; the same words within a text are none."""
    assert stated_s(body.encode()) == expected
