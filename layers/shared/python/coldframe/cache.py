"""The prediction cache: what was predicted for a text before. Texts are never stored."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

CacheKey: TypeAlias = bytes
"""Digest of text, bundle version and head."""

_ENTRY_OVERHEAD_BYTES = 250  # key, value header and dictionary slots in CPython, rounded up
_KEY_BYTES = 16


def cache_key(version: str, head: str, text: str) -> CacheKey:
    """The key of one prediction. It depends on these three, and on nothing else."""
    digest = hashlib.blake2b(digest_size=_KEY_BYTES)
    for part in (version, head, text):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))  # no two triples share a byte string
        digest.update(encoded)
    return digest.digest()


class PredictionCache:
    """Level 1: a least-recently-used map in the environment, bounded in bytes."""

    def __init__(self, max_bytes: int) -> None:
        """max_bytes: bound on what the entries occupy; 0 keeps nothing."""
        self._max_bytes = max_bytes
        self._entries: OrderedDict[CacheKey, bytes] = OrderedDict()
        self.size_bytes = 0

    def get_many(self, keys: Iterable[CacheKey]) -> dict[CacheKey, bytes]:
        """Values of the keys that are there; each of them is now the most recently used."""
        found = {key: self._entries[key] for key in keys if key in self._entries}
        for key in found:
            self._entries.move_to_end(key)
        return found

    def put_many(self, values: Mapping[CacheKey, bytes]) -> None:
        """Keeps the values, then forgets the least recently used until they fit."""
        for key, value in values.items():
            self._forget(key)
            self._entries[key] = value
            self.size_bytes += _entry_bytes(value)
        while self.size_bytes > self._max_bytes:
            self._forget(next(iter(self._entries)))

    def _forget(self, key: CacheKey) -> None:
        value = self._entries.pop(key, None)
        if value is not None:
            self.size_bytes -= _entry_bytes(value)


def _entry_bytes(value: bytes) -> int:
    return len(value) + _ENTRY_OVERHEAD_BYTES
