"""Texts of an object in S3, divided into parts as they are read: no object is held whole."""

import csv
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from coldframe.jobs.ports import BadSource, Objects, Queue
from coldframe.jobs.records import MAX_PARTS, PART_BYTES, PART_TEXTS, Part, Source, divided

_ROWS_AT_ONCE = PART_TEXTS * 4
_MESSAGES_AT_ONCE = 10
_FIELD_CHARACTERS = 1 << 20


def split_source(job_id: str, source: Source, objects: Objects, queue: Queue) -> int:
    """Writes the parts of a source and sends their messages; how many there are.

    Raises BadSource for what cannot be read, Unavailable.
    """
    parts: list[Part] = []
    number = first = 0
    for texts in _parts(_texts(source, objects)):
        if number >= MAX_PARTS:
            raise BadSource(
                f"the source has more than {MAX_PARTS} parts of {PART_TEXTS} texts or {PART_BYTES} bytes."
                " Divide it, or score it offline"
            )
        key = f"jobs/{job_id}/texts/{number:05d}.json"
        objects.put(key, msgspec.json.encode(texts))
        parts.append(Part(job_id, number, first, key=key))
        number, first = number + 1, first + len(texts)
        if len(parts) == _MESSAGES_AT_ONCE:
            queue.send(parts)
            parts = []
    if not number:
        raise BadSource("the source has no texts")
    if parts:
        queue.send(parts)
    return number


def _texts(source: Source, objects: Objects) -> Iterator[str]:
    if source.format == "parquet":
        from coldframe.jobs.parquet import parquet_texts

        return parquet_texts(source, objects.open(source.s3))
    return read_texts(source, objects.lines(source.s3))


def _parts(texts: Iterable[str]) -> Iterator[list[str]]:
    """As `divided`, without holding all of them. The last part of each lot begins the next lot."""
    lot: list[str] = []
    for text in texts:
        lot.append(text)
        if len(lot) == _ROWS_AT_ONCE:
            *whole, lot = divided(lot)
            yield from whole
    yield from divided(lot)


def read_texts(source: Source, lines: Iterable[str]) -> Iterator[str]:
    """The texts of a source of lines. lines: of its object, with or without their ends. Raises BadSource."""
    return _csv(source, lines) if source.format == "csv" else _json_lines(source, lines)


def _json_lines(source: Source, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as exc:
            raise BadSource(f"line {number} of the source is no JSON") from exc
        text = found if isinstance(found, str) else _field(source, found)
        if not isinstance(text, str):
            raise BadSource(
                f'line {number} of the source has no text, expected a string or {{"{source.column}": "…"}}'
            )
        yield text


def _field(source: Source, found: Any) -> Any:
    return found.get(source.column) if isinstance(found, dict) else None


def _csv(source: Source, lines: Iterable[str]) -> Iterator[str]:
    csv.field_size_limit(_FIELD_CHARACTERS)
    rows = csv.reader(lines)
    try:
        header = next(rows, [])
        if source.column not in header:
            raise BadSource(f'the source has no column "{source.column}" in its first line')
        column = header.index(source.column)
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                where = f"line {rows.line_num} of the source"
                raise BadSource(f"{where} has {len(row)} columns, expected {len(header)} as in the first")
            yield row[column]
    except csv.Error as exc:
        raise BadSource(f"line {rows.line_num} of the source is no CSV") from exc
