"""Stored form of a cached value: a version byte, its kind, a checksum, then the payload."""

from enum import IntEnum
from typing import NamedTuple

from coldframe.digests import blake2b

VERSION = 1
"""First byte. A reader of another version takes the value for a miss."""

_CHECKSUM_BYTES = 8
_FLOAT_BYTES = 4
_HEADER_BYTES = 2 + _CHECKSUM_BYTES


class Kind(IntEnum):
    """Kind of a value. The numbers are stored: they never change their meaning."""

    PREDICTION = 1
    """float32 (k + 1,): probabilities of all labels by one head, and the out-of-distribution score."""
    EMBEDDING = 2
    """float32 (d,): the embedding of one text."""
    POINTER = 3
    """The size of an S3 object that holds the value in this stored form."""
    AUTO = 4
    """A byte, 0 or 1: the part that answered for `auto`. Then float32 (k + 1,), as above."""


class Shapes(NamedTuple):
    """Sizes of one model's values. labels: k. dimension: d, of its encoder."""

    labels: int
    dimension: int

    def fit(self, kind: Kind, payload: bytes) -> bool:
        """Whether the payload has the size of its kind."""
        if kind is Kind.AUTO:
            return len(payload) == 1 + _FLOAT_BYTES * (self.labels + 1) and payload[0] in (0, 1)
        return len(payload) == _FLOAT_BYTES * (self.dimension if kind is Kind.EMBEDDING else self.labels + 1)


class CorruptValue(Exception):
    """The bytes are not a value of this version, or belong to another key."""


def encode(key: bytes, kind: Kind, payload: bytes) -> bytes:
    """`payload` in the form stored under `key`."""
    return bytes((VERSION, kind)) + _checksum(key, kind, payload) + payload


def decode(key: bytes, value: bytes) -> tuple[Kind, bytes]:
    """Kind and payload of a value stored under `key`.

    Raises CorruptValue for anything that `encode` did not write for this very key.
    """
    if len(value) < _HEADER_BYTES or value[0] != VERSION or value[1] not in _KINDS:
        raise CorruptValue
    kind, payload = Kind(value[1]), value[_HEADER_BYTES:]
    if value[2:_HEADER_BYTES] != _checksum(key, kind, payload):
        raise CorruptValue
    return kind, payload


def encode_pointer(key: bytes, size_bytes: int) -> bytes:
    """The table's entry for a value of `size_bytes` that is stored in S3."""
    return encode(key, Kind.POINTER, size_bytes.to_bytes(8, "big"))


def pointed_size(payload: bytes) -> int:
    """Size in bytes of the object that a pointer's payload announces."""
    return int.from_bytes(payload, "big")


def _checksum(key: bytes, kind: Kind, payload: bytes) -> bytes:
    # Keyed: the value of another key is as foreign as a damaged one.
    digest = blake2b(digest_size=_CHECKSUM_BYTES, key=key)
    digest.update(bytes((VERSION, kind)))
    digest.update(payload)
    return digest.digest()


_KINDS = frozenset(Kind)
