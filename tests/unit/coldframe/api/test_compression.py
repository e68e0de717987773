"""gzip bodies up to a limit."""

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.api.compression import Gunzip, gunzip
from coldframe.errors import Malformed, TooLarge


@given(st.binary(max_size=2000))
def test_round_trip(content: bytes) -> None:
    """What gzip made is read, also when it has exactly the size allowed."""
    assert gunzip(gzip.compress(content), max_bytes=len(content)) == content


def test_one_byte_too_many() -> None:
    """A body one byte over the limit is refused, with the limit."""
    with pytest.raises(TooLarge, match="more than 99 bytes when decompressed"):
        gunzip(gzip.compress(b"a" * 100), max_bytes=99)


def test_bomb_costs_no_more_than_the_limit() -> None:
    """A body that would fill the memory is given up at the limit."""
    bomb = gzip.compress(b"\0" * 50_000_000)
    tracemalloc.start()
    with pytest.raises(TooLarge):
        gunzip(bomb, max_bytes=100_000)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1_000_000


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"\x1f\x8b", gzip.compress(b"text", mtime=0)[:-1], gzip.compress(b"a", mtime=0)[:12]]
)
def test_not_gzip_or_cut_off(body: bytes) -> None:
    """What is no gzip, or not all of it, is malformed."""
    with pytest.raises(Malformed, match=r"not gzip|cut off"):
        gunzip(body, max_bytes=100)


def test_wrong_checksum() -> None:
    """Content that is not what was compressed is refused."""
    body = bytearray(gzip.compress(b"some text"))
    body[-5] ^= 1
    with pytest.raises(Malformed):
        gunzip(bytes(body), max_bytes=100)


def test_one_member_only() -> None:
    """A second member is refused: a body of many empty ones would be slow to read."""
    with pytest.raises(Malformed, match="Send one gzip member"):
        gunzip(gzip.compress(b"a") + gzip.compress(b"b"), max_bytes=100)


@given(st.binary(max_size=500), st.integers(0, 3), st.integers(1, 40), st.integers(1, 40))
def test_pieces_are_those_of_the_whole(content: bytes, zeros: int, chunk: int, piece: int) -> None:
    """However a body arrives, and whatever its pieces' size: their content is that of the whole body."""
    content += b"\0" * 1000 * zeros
    body = gzip.compress(content)
    stream = Gunzip(len(content), piece)
    chunks = [body[start : start + chunk] for start in range(0, len(body), chunk)]
    pieces = [found for one in chunks for found in stream.add(one)]
    stream.end()
    assert b"".join(pieces) == content
    assert all(len(found) <= piece for found in pieces)


def test_bytes_after_the_end_are_counted_in_all_chunks() -> None:
    """A body that goes on after its end is refused, with how much there is, however it arrives."""
    stream = Gunzip(100, 10)
    for chunk in (gzip.compress(b"a") + b"xx", b"yyy"):
        list(stream.add(chunk))
    with pytest.raises(Malformed, match="Found 5 bytes after the end"):
        stream.end()
