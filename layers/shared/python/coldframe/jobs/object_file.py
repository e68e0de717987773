"""One version of an object, and a file that reads it in ranges, since Parquet readers start at the end."""

import io
from collections.abc import Callable
from typing import Any

from msgspec import Struct

ReadRange = Callable[[int, int], bytes]
"""Returns the bytes from the first place to the last, both included."""


class Pin(Struct, frozen=True):
    """One version of an object: its ETag, in quotes as S3 returns it, and its size."""

    etag: str
    size_bytes: int


class Cursor(Struct, frozen=True):
    """Place in a source, between two texts.

    offset_bytes: where the next line begins; unused for Parquet. rows: lines, or rows of a table, before it.
    """

    offset_bytes: int = 0
    rows: int = 0


START = Cursor()


class ObjectFile(io.RawIOBase):
    """Each read requests a range. size: bytes of the object. Raises the errors of `read_range`."""

    def __init__(self, read_range: ReadRange, size: int) -> None:
        self._read_range = read_range
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._place)
        if length <= 0:
            return 0
        content = self._read_range(self._place, self._place + length - 1)
        buffer[: len(content)] = content
        self._place += len(content)
        return len(content)
