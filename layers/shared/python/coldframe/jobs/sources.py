"""Texts of an object in S3, as parts, from any place on; memory holds one range of the object."""

import csv
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from coldframe.jobs.lines import MAX_ROW_BYTES, Lines
from coldframe.jobs.object_file import START, Cursor, ObjectFile, Pin, ReadRange
from coldframe.jobs.ports import BadSource, Objects
from coldframe.jobs.records import PART_BYTES, PART_TEXTS, Source, text_bytes

Row = tuple[str, Cursor]
"""A text, and the cursor after it."""


def read_parts(
    source: Source, objects: Objects, pin: Pin, cursor: Cursor = START
) -> Iterator[tuple[list[str], Cursor]]:
    """Parts of a source from a cursor on, each with the cursor after it.

    They equal the parts of a reading from the start, so a reading can be resumed after any part. pin: the
    version of the object. Raises BadSource, also if the object was changed; Unavailable.
    """
    part: list[str] = []
    size = 0
    for text, after in _rows(source, partial(objects.read_range, source.s3, pin), pin.size_bytes, cursor):
        bytes_ = text_bytes(text)
        if part and (size + bytes_ > PART_BYTES or len(part) == PART_TEXTS):
            yield part, cursor
            part, size = [], 0
        part.append(text)
        size += bytes_
        cursor = after
    if part:
        yield part, cursor


def _rows(source: Source, read_range: ReadRange, size_bytes: int, cursor: Cursor) -> Iterator[Row]:
    if source.format == "parquet":
        return _parquet(source, read_range, size_bytes, cursor)
    read = _csv if source.format == "csv" else _json_lines
    return read(source, read_range, size_bytes, cursor)


def _parquet(source: Source, read_range: ReadRange, size_bytes: int, cursor: Cursor) -> Iterator[Row]:
    from coldframe.jobs.parquet import parquet_texts

    texts = parquet_texts(source, ObjectFile(read_range, size_bytes), cursor.rows)
    for row, text in enumerate(texts, cursor.rows + 1):
        yield text, Cursor(rows=row)


def _json_lines(source: Source, read_range: ReadRange, size_bytes: int, cursor: Cursor) -> Iterator[Row]:
    lines = Lines(read_range, size_bytes, cursor)
    for line in lines:
        lines.end_row()
        if line.strip():
            yield _text(source, line, lines.cursor.rows), lines.cursor


def _text(source: Source, line: str, number: int) -> str:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise BadSource(f"line {number} of the source is not JSON. Write one JSON value per line") from exc
    text = value if isinstance(value, str) else _field(source, value)
    if not isinstance(text, str):
        raise BadSource(
            f'line {number} of the source has no text. Write a string or {{"{source.column}": "…"}}'
        )
    return text


def _field(source: Source, value: Any) -> Any:
    return value.get(source.column) if isinstance(value, dict) else None


def _csv(source: Source, read_range: ReadRange, size_bytes: int, cursor: Cursor) -> Iterator[Row]:
    first = Lines(read_range, size_bytes, START)
    header = next(_csv_rows(first), [])
    if source.column not in header:
        raise BadSource(f'the source has no column "{source.column}" in its first line')
    column = header.index(source.column)
    lines = Lines(read_range, size_bytes, first.cursor if cursor == START else cursor)
    for row in _csv_rows(lines):
        if len(row) != len(header):
            where = f"line {lines.cursor.rows} of the source"
            raise BadSource(
                f"{where} has {len(row)} columns, but the first line has {len(header)}. Give each row as many"
            )
        yield row[column], lines.cursor


def _csv_rows(lines: Lines) -> Iterator[list[str]]:
    """Rows that are not empty. A row reads no line of the next one, so `lines.cursor` is its end."""
    csv.field_size_limit(MAX_ROW_BYTES)
    try:
        # Unless strict, an unclosed quote would make one text of all rows after it.
        for row in csv.reader(lines, strict=True):
            lines.end_row()
            if row:
                yield row
    except csv.Error as exc:
        raise BadSource(f"line {lines.cursor.rows} of the source is not CSV") from exc
