"""Lines of an object, read in ranges and in linear time: memory holds one range, and lines have a limit."""

from collections.abc import Iterator

from coldframe.jobs.object_file import Cursor, ReadRange
from coldframe.jobs.ports import BadSource

MAX_ROW_BYTES = 1 << 20
"""Most bytes of a line, and of a row of CSV, whose quoted fields may hold line ends."""
RANGE_BYTES = 1 << 20
_BYTE_ORDER_MARK = "\ufeff"


class Lines:
    """Lines from a cursor on, with their ends. cursor: place after the last returned line."""

    def __init__(self, read_range: ReadRange, size_bytes: int, cursor: Cursor) -> None:
        self.cursor = cursor
        self._read_range = read_range
        self._size_bytes = size_bytes
        self._row_begins = cursor.offset_bytes

    def __iter__(self) -> Iterator[str]:
        """Raises BadSource for a row that is too long or not UTF-8, and the errors of `read_range`."""
        for line in self._lines():
            cursor = Cursor(self.cursor.offset_bytes + len(line), self.cursor.rows + 1)
            self._check_size(cursor.offset_bytes)
            try:
                text = line.decode()
            except UnicodeDecodeError as exc:
                raise BadSource(f"line {cursor.rows} of the source is not UTF-8. Save it as UTF-8") from exc
            self.cursor = cursor
            yield text if cursor.rows > 1 else text.removeprefix(_BYTE_ORDER_MARK)

    def end_row(self) -> None:
        """Marks the next line as the beginning of another row."""
        self._row_begins = self.cursor.offset_bytes

    def _lines(self) -> Iterator[bytes]:
        rest, place = b"", self.cursor.offset_bytes
        while place < self._size_bytes:
            content = self._read_range(place, min(place + RANGE_BYTES, self._size_bytes) - 1)
            place += len(content)
            # Bytes end lines at \n and \r alone; text would also end them at U+2028, which JSON may hold.
            *whole, rest = (rest + content).splitlines(keepends=True)
            if rest.endswith(b"\n"):
                whole, rest = [*whole, rest], b""
            yield from whole
            self._check_size(place)
        if rest:
            yield rest

    def _check_size(self, end: int) -> None:
        if end - self._row_begins > MAX_ROW_BYTES:
            line = self.cursor.rows + 1
            raise BadSource(
                f"line {line} of the source makes a row of more than {MAX_ROW_BYTES} bytes. Shorten it"
            )
