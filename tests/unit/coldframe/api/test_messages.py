"""Bodies in and out, without a route."""

import base64
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.api.messages import BINARY, Reply, Request, read_body
from coldframe.config import Settings
from coldframe.contract import JSON
from coldframe.errors import TooLarge, UnsupportedMediaType

SETTINGS = Settings(max_body_bytes=100, max_decompressed_bytes=200)


@given(st.text(st.characters(exclude_characters="\x7f", exclude_categories=["Cs"])))
def test_carried_text(text: str) -> None:
    """A text is never longer in a function's result than is reckoned; DEL apart, which nobody sends."""
    body = json.dumps(text, ensure_ascii=False).encode()
    assert len(json.dumps(body.decode())) - 2 <= Reply(200, body, {"content-type": JSON}).carried_bytes()


@given(st.binary(max_size=200))
def test_carried_bytes(body: bytes) -> None:
    """Binary content is reckoned as the base64 that it becomes."""
    reply = Reply(200, body, {"content-type": BINARY})
    assert reply.carried_bytes() == len(base64.b64encode(body))


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", " gzip "])
def test_gzip(encoding: str) -> None:
    """A body sent with gzip is decompressed, up to its own limit."""
    headers = {"content-encoding": encoding}
    body = gzip.compress(b"a" * 200)
    assert read_body(Request("POST", "/", headers, body), SETTINGS) == b"a" * 200
    with pytest.raises(TooLarge):
        read_body(Request("POST", "/", headers, gzip.compress(b"a" * 201)), SETTINGS)


def test_compressed_size_has_a_limit_too() -> None:
    """The limit on what is sent holds for compressed bodies as well."""
    with pytest.raises(TooLarge, match="The body has 101 bytes, expected at most 100"):
        read_body(Request("POST", "/", {"content-encoding": "gzip"}, b"x" * 101), SETTINGS)


@pytest.mark.parametrize("encoding", ["deflate", "br", "zstd", "gzip, gzip", "x-gzip"])
def test_other_encodings(encoding: str) -> None:
    """Any other encoding is refused by what is read instead."""
    with pytest.raises(UnsupportedMediaType, match="Send it with gzip, or without one"):
        read_body(Request("POST", "/", {"content-encoding": encoding}, b"{}"), SETTINGS)


def test_media_types_of_a_route() -> None:
    """A route may read another media type, which the others refuse."""
    request = Request("POST", "/", {"content-type": BINARY}, b"{}")
    assert read_body(request, SETTINGS, also=frozenset({BINARY})) == b"{}"
    with pytest.raises(UnsupportedMediaType, match=r"Send Content-Type: application/json\."):
        read_body(request, SETTINGS)
