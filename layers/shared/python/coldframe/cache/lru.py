"""Level 1 of the prediction cache: a least-recently-used map in the environment, bounded in bytes."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping

_ENTRY_OVERHEAD_BYTES = 250  # key, value header and dictionary slots in CPython, rounded up


class LruCache:
    """What was used last stays; what was used longest ago goes first."""

    def __init__(self, max_bytes: int) -> None:
        """max_bytes: bound on what the entries occupy; 0 keeps nothing."""
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()
        self.size_bytes = 0

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Values of the keys that are there; each of them is now the most recently used."""
        found = {key: self._entries[key] for key in keys if key in self._entries}
        for key in found:
            self._entries.move_to_end(key)
        return found

    def put_many(self, values: Mapping[bytes, bytes]) -> None:
        """Keeps the values, then forgets the least recently used until they fit."""
        for key, value in values.items():
            self._forget(key)
            self._entries[key] = value
            self.size_bytes += _entry_bytes(value)
        while self.size_bytes > self._max_bytes:
            self._forget(next(iter(self._entries)))

    def _forget(self, key: bytes) -> None:
        value = self._entries.pop(key, None)
        if value is not None:
            self.size_bytes -= _entry_bytes(value)


def _entry_bytes(value: bytes) -> int:
    return len(value) + _ENTRY_OVERHEAD_BYTES
