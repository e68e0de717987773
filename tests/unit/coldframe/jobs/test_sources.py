"""Texts of objects: JSON Lines, CSV and Parquet, whole, spoilt, and read from any place on."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

from coldframe.jobs import lines, parquet, sources
from coldframe.jobs.lines import MAX_ROW_BYTES
from coldframe.jobs.object_file import START, Cursor, ObjectFile, Pin
from coldframe.jobs.parquet import parquet_texts
from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import PART_TEXTS, Source, divided
from coldframe.jobs.sources import read_parts
from tests.support.jobs_world import MemoryObjects

URI = "s3://ours/in"
CSV, LINES, PARQUET = (Source(URI, kind, "body") for kind in ("csv", "jsonl", "parquet"))
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
TEXTS = st.lists(TEXT, min_size=1, max_size=30)


def parts_of(source: Source, content: bytes, cursor: Cursor = START) -> list[tuple[list[str], Cursor]]:
    """Parts of a source with this content, each with the cursor after it."""
    objects = MemoryObjects()
    objects.contents[URI] = content
    return list(read_parts(source, objects, objects.pin(URI), cursor))


def texts_of(source: Source, content: bytes) -> list[str]:
    return [text for part, _ in parts_of(source, content) for text in part]


def csv_of(texts: list[str], line_end: str = "\r\n", quoting: Literal[0, 1] = csv.QUOTE_MINIMAL) -> bytes:
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator=line_end, quoting=quoting)
    writer.writerow(["id", "body"])
    writer.writerows([number, text] for number, text in enumerate(texts))
    return table.getvalue().encode()


def lines_of(texts: list[str]) -> bytes:
    """Strings and objects, with blank lines between them and raw line separators (U+2028) in them."""
    rows = [
        json.dumps(text if len(text) % 2 else {"body": text, "id": 1}, ensure_ascii=False) for text in texts
    ]
    return "\n \r\n".join(rows).encode()


def parquet_of(**columns: Sequence[object] | pa.Array) -> bytes:
    """A table, in several row groups."""
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, row_group_size=700)
    return file.getvalue()


FORMATS: dict[str, tuple[Source, Callable[[list[str]], bytes]]] = {
    "csv": (CSV, csv_of),
    "csv, one line end": (CSV, lambda texts: csv_of(texts, "\r", csv.QUOTE_ALL)),
    "jsonl": (LINES, lines_of),
    "parquet": (PARQUET, lambda texts: parquet_of(body=list(texts))),
}


@pytest.mark.parametrize("name", FORMATS)
@settings(deadline=None)
@given(TEXTS)
def test_what_is_written_is_read(name: str, texts: list[str]) -> None:
    """Any texts come back in order, with their line ends, with a byte order mark or without."""
    source, write = FORMATS[name]
    texts = [f"{text}\n{text}" for text in texts]
    assert texts_of(source, write(texts)) == texts
    if source is not PARQUET:
        assert texts_of(source, b"\xef\xbb\xbf" + write(texts)) == texts


@pytest.mark.parametrize("name", FORMATS)
@settings(deadline=None, max_examples=30)
@given(TEXTS, st.integers(1, 4), st.integers(1, 40))
def test_reading_is_resumed(name: str, texts: list[str], part_texts: int, range_bytes: int) -> None:
    """The parts after any cursor are those of a reading from the start, whatever ranges it reads."""
    source, write = FORMATS[name]
    content = write([f"{text}\n{text}" for text in texts])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "PART_TEXTS", part_texts)
        whole = parts_of(source, content)
        patch.setattr(lines, "RANGE_BYTES", range_bytes)
        for number, (_, cursor) in enumerate(whole, 1):
            assert parts_of(source, content, cursor) == whole[number:]


def test_a_cursor_is_json() -> None:
    """A cursor is kept with a job, and read again."""
    cursor = Cursor(1 << 40, 7)
    assert msgspec.json.decode(msgspec.json.encode(cursor), type=Cursor) == cursor


@pytest.mark.parametrize(
    ("source", "content", "said"),
    [
        (LINES, b'"a"\n{', "line 2 of the source is not JSON"),
        (LINES, b'{"text": "a"}', 'Write a string or {"body"'),
        (LINES, b"1", "line 1 of the source has no text"),
        (LINES, b'{"body": null}', "line 1"),
        (LINES, b"[" * 100_000, "line 1 of the source is not JSON"),
        (LINES, b'"a"\n"\xff"\n', "line 2 of the source is not UTF-8"),
        (CSV, b"id,text\n1,a\n", 'no column "body"'),
        (CSV, b"", "no column"),
        (CSV, b"id,body\n1,a\n2\n", "line 3 of the source has 1 columns, but the first line has 2"),
        (CSV, b"id,body\n1,\xff\n", "line 2 of the source is not UTF-8"),
        (CSV, b'id,body\n1,"a\n2,b\n', "line 3 of the source is not CSV"),
        (CSV, b'id,body\n1,"a"b\n', "line 2 of the source is not CSV"),
    ],
)
def test_spoilt_sources(source: Source, content: bytes, said: str) -> None:
    """The place and the reason are said, and nothing of the text."""
    with pytest.raises(BadSource) as raised:
        parts_of(source, content)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("source", "content", "line"),
    [
        (LINES, b'"a"\n["' + b"x" * MAX_ROW_BYTES + b'"]\n', 2),
        (LINES, b'"a"\n["' + b"x" * 30 * MAX_ROW_BYTES, 2),
        (CSV, b"id,body\n1," + b"x" * MAX_ROW_BYTES, 2),
        (CSV, b'id,body\n1,"' + b"x\n" * MAX_ROW_BYTES, 524_288 + 2 - 2),
        (CSV, b'id,body\n1,"a\n",' + b'"b\n",' * MAX_ROW_BYTES, 209_715 + 2),
    ],
    ids=["long line", "one line of 30 MB", "long field", "field that is never closed", "many fields"],
)
def test_rows_have_a_limit(source: Source, content: bytes, line: int) -> None:
    """A row over the limit is refused by its line, after a few ranges: it is never held whole."""
    objects = Counted()
    objects.contents[URI] = content
    with pytest.raises(
        BadSource, match=f"line {line} of the source makes a row of more than {MAX_ROW_BYTES}"
    ):
        list(read_parts(source, objects, objects.pin(URI)))
    assert objects.read_bytes <= 4 * MAX_ROW_BYTES


class Counted(MemoryObjects):
    """Objects that count how much of them is read."""

    read_bytes = 0

    def read_range(self, uri: str, pin: Pin, first: int, last: int) -> bytes:
        self.read_bytes += last - first + 1
        return super().read_range(uri, pin, first, last)


def test_a_source_that_is_changed_between_its_parts() -> None:
    """Texts of two versions never come together in one job."""
    objects = MemoryObjects()
    objects.contents[URI] = b'"a"\n' * 1_000_000
    reading = read_parts(LINES, objects, objects.pin(URI))
    assert next(reading)[0] == ["a"] * PART_TEXTS
    objects.contents[URI] = b'"b"\n' * 1_000_000
    with pytest.raises(BadSource, match="changed while it was read"):
        list(reading)


@settings(deadline=None)
@given(st.lists(st.text(max_size=200), max_size=50), st.integers(1, 7), st.integers(1, 500))
def test_parts(texts: list[str], part_texts: int, part_bytes: int) -> None:
    """Parts hold all texts in order, and are no larger than they may be unless one text is."""
    parts = divided(texts, part_texts, part_bytes)
    assert [text for part in parts for text in part] == texts
    assert all(1 <= len(part) <= part_texts for part in parts)
    for part in parts:
        assert len(part) == 1 or sum(map(len, part)) <= part_bytes


@settings(deadline=None, max_examples=30)
@given(st.lists(TEXT, max_size=30), st.integers(1, 4), st.integers(1, 400))
def test_sources_and_lists_have_the_same_parts(texts: list[str], part_texts: int, part_bytes: int) -> None:
    """Texts are divided in one way, whether they are sent or read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "PART_TEXTS", part_texts)
        patch.setattr(sources, "PART_BYTES", part_bytes)
        parts = [part for part, _ in parts_of(LINES, lines_of(texts))]
    assert parts == divided(texts, part_texts, part_bytes)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PAR1 is not enough", "not Parquet"),
        (b"", "not Parquet"),
        (b"PAR1" + (1 << 30).to_bytes(4, "little") + b"PAR1", "footer has 1073741824 bytes"),
        (parquet_of(text=["a"]), 'no column "body"'),
        (parquet_of(body=["a"] * 800 + [None]), 'row 801 of the source has no text in "body"'),
        (parquet_of(body=[1]), "row 1 of the source has no text"),
        (parquet_of(body=[{"a": "b"}]), "row 1 of the source has no text"),
        (parquet_of(body=["a", "b" * (MAX_ROW_BYTES + 1)]), "row 2 of the source has a text of more than"),
    ],
)
def test_parquet_sources_that_cannot_be_read(content: bytes, said: str) -> None:
    """Each with its reason, which holds no text."""
    with pytest.raises(BadSource, match=said):
        parts_of(PARQUET, content)


def test_a_column_that_does_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group that says that its column inflates past the limit is refused unread; others may."""
    content = parquet_of(body=["a"] * 700 + ["b" * 1000] * 700, other=["c" * 2000] * 1400)
    monkeypatch.setattr(parquet, "MAX_COLUMN_BYTES", 1000)
    with pytest.raises(BadSource, match=r"row group 1 of the source has \d+ bytes in \"body\", expected at"):
        parts_of(PARQUET, content)


def test_a_repeated_text_is_held_once() -> None:
    """A gigabyte of one repeated text, in an object of less than a megabyte, is read in little memory."""
    text = "a" * MAX_ROW_BYTES
    content = parquet_of(body=pa.DictionaryArray.from_arrays([0] * 1000, [text]))
    assert len(content) < MAX_ROW_BYTES
    before = pa.total_allocated_bytes()
    for read in parquet_texts(PARQUET, file_of(content)):
        assert read == text
        assert pa.total_allocated_bytes() - before < 32 * MAX_ROW_BYTES


def test_row_groups_before_a_cursor_are_not_read() -> None:
    """A reading of Parquet is resumed at its row group."""
    objects = Counted()
    texts = [random.Random(number).randbytes(500).hex() for number in range(2100)]
    objects.contents[URI] = parquet_of(body=texts)
    pin = objects.pin(URI)
    assert [part for part, _ in read_parts(PARQUET, objects, pin, Cursor(rows=2099))] == [texts[-1:]]
    assert objects.read_bytes < pin.size_bytes / 2


WHOLE = parquet_of(body=[f"text {number} ü" for number in range(1500)])


def file_of(content: bytes) -> ObjectFile:
    return ObjectFile(lambda first, last: content[first : last + 1], len(content))


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_damaged_parquet_sources(changes: list[tuple[int, int]]) -> None:
    """Whatever bytes are changed, it is read, or it is the source's own fault: its neighbours go on."""
    damaged = bytearray(WHOLE)
    for place, byte in changes:
        damaged[place] = byte
    with contextlib.suppress(BadSource):
        list(parquet_texts(PARQUET, file_of(bytes(damaged))))


def test_a_parquet_source_that_cannot_be_reached() -> None:
    """A service that fails in the middle of it is waited for: the source is not to blame."""

    def read_range(first: int, last: int) -> bytes:
        if first < len(WHOLE) // 2:
            raise Unavailable("SlowDown")
        return WHOLE[first : last + 1]

    with pytest.raises(Unavailable, match="SlowDown"):
        list(parquet_texts(PARQUET, ObjectFile(read_range, len(WHOLE))))


def test_a_file_of_ranges() -> None:
    """An object is read from any place, as a file is."""
    content = bytes(range(256)) * 20
    file = file_of(content)
    assert file.seek(-6, io.SEEK_END) == len(content) - 6
    assert (file.read(4), file.read()) == (content[-6:-2], content[-2:])
    assert file.read(1) == b""
    assert file.seek(0) == 0
    assert file.read() == content


@pytest.mark.parametrize("content", [b"\n\n", b""])
def test_empty_sources(content: bytes) -> None:
    """A source without texts has no parts."""
    assert parts_of(LINES, content) == []
