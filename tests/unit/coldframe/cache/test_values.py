"""How cached values are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.cache.values import CorruptValue, Kind, decode, encode, encode_pointer, pointed_size

keys = st.binary(min_size=16, max_size=16)
kinds = st.sampled_from(Kind)
payloads = st.binary(max_size=200)


@given(keys, kinds, payloads)
def test_round_trip(key: bytes, kind: Kind, payload: bytes) -> None:
    """What was written is read, to the bit."""
    assert decode(key, encode(key, kind, payload)) == (kind, payload)


@given(keys, kinds, payloads, st.data())
def test_any_flipped_bit_is_noticed(key: bytes, kind: Kind, payload: bytes, data: st.DataObject) -> None:
    """A value with one bit changed anywhere, or cut anywhere, or with a byte more, is corrupt."""
    value = encode(key, kind, payload)
    bit = data.draw(st.integers(0, 8 * len(value) - 1))
    flipped = bytearray(value)
    flipped[bit // 8] ^= 1 << bit % 8
    for damaged in (bytes(flipped), value[: bit // 8], value + b"\x00"):
        with pytest.raises(CorruptValue):
            decode(key, damaged)


@given(keys, keys, kinds, payloads)
def test_value_belongs_to_its_key(key: bytes, other: bytes, kind: Kind, payload: bytes) -> None:
    """A value found under another key is foreign."""
    value = encode(key, kind, payload)
    if key == other:
        assert decode(other, value) == (kind, payload)
    else:
        with pytest.raises(CorruptValue):
            decode(other, value)


@given(keys, st.binary(max_size=64))
def test_foreign_bytes_are_corrupt(key: bytes, value: bytes) -> None:
    """Whatever else lies in the table is told from a value, never an error."""
    with pytest.raises(CorruptValue):
        decode(key, value)


@given(keys, st.integers(0, 2**63))
def test_pointer(key: bytes, size_bytes: int) -> None:
    """A pointer is a value that tells the size of its object."""
    kind, payload = decode(key, encode_pointer(key, size_bytes))
    assert (kind, pointed_size(payload)) == (Kind.POINTER, size_bytes)


def test_compact() -> None:
    """A value is ten bytes longer than what it holds."""
    assert len(encode(bytes(16), Kind.PREDICTION, bytes(80))) == 90
