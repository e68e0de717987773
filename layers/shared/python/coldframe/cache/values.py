"""How a cached value is written: a version byte, its kind, a checksum, then the bytes themselves."""

import hashlib
from enum import IntEnum
from typing import NamedTuple

VERSION = 1
"""Written first. A reader of another version takes the value for a miss."""

_CHECKSUM_BYTES = 8
_FLOAT_BYTES = 4
_HEADER_BYTES = 2 + _CHECKSUM_BYTES


class Kind(IntEnum):
    """What a value is. The numbers are stored: they never change their meaning."""

    PREDICTION = 1
    """float32 (k + 1,): probabilities of all labels by one head, and the out-of-distribution score."""
    EMBEDDING = 2
    """float32 (d,): the embedding of one text."""
    POINTER = 3
    """The size of an object in S3 that holds the value, itself written as here."""
    AUTO = 4
    """A byte, 0 or 1: who gave the answer of `auto`. Then float32 (k + 1,), as above."""


class Shapes(NamedTuple):
    """What values of one model look like. labels: k. dimension: d, of its encoder."""

    labels: int
    dimension: int

    def fit(self, kind: Kind, payload: bytes) -> bool:
        """Whether a payload is one of this kind: there is one size for each."""
        if kind is Kind.AUTO:
            return len(payload) == 1 + _FLOAT_BYTES * (self.labels + 1) and payload[0] in (0, 1)
        return len(payload) == _FLOAT_BYTES * (self.dimension if kind is Kind.EMBEDDING else self.labels + 1)


class CorruptValue(Exception):
    """These bytes are no value of this version, or not the one of this key."""


def encode(key: bytes, kind: Kind, payload: bytes) -> bytes:
    """`payload` as it is stored under `key`."""
    return bytes((VERSION, kind)) + _checksum(key, kind, payload) + payload


def decode(key: bytes, value: bytes) -> tuple[Kind, bytes]:
    """Kind and payload of the value that was found under `key`.

    Raises CorruptValue for anything that `encode` did not write for this very key.
    """
    if len(value) < _HEADER_BYTES or value[0] != VERSION or value[1] not in _KINDS:
        raise CorruptValue
    kind, payload = Kind(value[1]), value[_HEADER_BYTES:]
    if value[2:_HEADER_BYTES] != _checksum(key, kind, payload):
        raise CorruptValue
    return kind, payload


def encode_pointer(key: bytes, size_bytes: int) -> bytes:
    """What stands in the table for a value of `size_bytes` that is kept in S3."""
    return encode(key, Kind.POINTER, size_bytes.to_bytes(8, "big"))


def pointed_size(payload: bytes) -> int:
    """Bytes of the object that a pointer's payload announces."""
    return int.from_bytes(payload, "big")


def _checksum(key: bytes, kind: Kind, payload: bytes) -> bytes:
    # Keyed: the value of another key is as foreign as a damaged one.
    digest = hashlib.blake2b(digest_size=_CHECKSUM_BYTES, key=key)
    digest.update(bytes((VERSION, kind)))
    digest.update(payload)
    return digest.digest()


_KINDS = frozenset(Kind)
