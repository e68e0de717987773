"""Texts of objects: JSON Lines, CSV and Parquet, whole and spoilt."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from typing import BinaryIO, cast

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

from coldframe.jobs.object_file import ObjectFile
from coldframe.jobs.parquet import parquet_texts
from coldframe.jobs.ports import BadSource, Unavailable
from coldframe.jobs.records import PART_BYTES, PART_TEXTS, Part, Source, divided, read_texts
from coldframe.jobs.sources import read_texts as texts_of
from coldframe.jobs.sources import split_source
from tests.jobs_world import MemoryObjects, MemoryQueue

URI = "s3://ours/in"
CSV, LINES = Source(URI, "csv", "body"), Source(URI, "jsonl", "body")
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=30))
def test_what_is_written_is_read(texts: list[str]) -> None:
    """Any texts come back in order, from a table with other columns and from lines of either form."""
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(["id", "body"])
    writer.writerows([number, f"{text}\n{text}"] for number, text in enumerate(texts))
    lines = [line.decode() for line in table.getvalue().encode().splitlines(keepends=True)]
    assert list(texts_of(CSV, lines)) == [f"{text}\n{text}" for text in texts]
    rows = [json.dumps(text) if len(text) % 2 else json.dumps({"body": text, "id": 1}) for text in texts]
    assert list(texts_of(LINES, [*rows, "", " "])) == texts


@pytest.mark.parametrize(
    ("source", "lines", "said"),
    [
        (LINES, ['"a"', "{"], "line 2 of the source is no JSON"),
        (LINES, ['{"text": "a"}'], 'expected a string or {"body"'),
        (LINES, ["1"], "line 1 of the source has no text"),
        (LINES, ['{"body": null}'], "line 1"),
        (CSV, ["id,text\n", "1,a\n"], 'no column "body"'),
        (CSV, [], "no column"),
        (CSV, ["id,body\n", "1,a\n", "2\n"], "line 3 of the source has 1 columns, expected 2"),
    ],
)
def test_spoilt_sources(source: Source, lines: list[str], said: str) -> None:
    """The place and the reason are said, and nothing of the text."""
    with pytest.raises(BadSource) as raised:
        list(texts_of(source, lines))
    assert said in str(raised.value)


@settings(deadline=None)
@given(st.lists(st.text(max_size=200), max_size=50), st.integers(1, 7), st.integers(1, 500))
def test_parts(texts: list[str], part_texts: int, part_bytes: int) -> None:
    """Parts hold all texts in order, and are no larger than they may be unless one text is."""
    parts = divided(texts, part_texts, part_bytes)
    assert [text for part in parts for text in part] == texts
    assert all(1 <= len(part) <= part_texts for part in parts)
    for part in parts:
        assert len(part) == 1 or sum(map(len, part)) <= part_bytes


def test_a_split_source() -> None:
    """Each part is an object, and a message that names it; a repeat is the same."""
    objects, queue = MemoryObjects(), MemoryQueue()
    texts = [f"text {number}" for number in range(2 * PART_TEXTS + 1)]
    objects.contents[URI] = "\n".join(map(json.dumps, texts)).encode()
    for _ in range(2):
        assert split_source("j", LINES, objects, queue) == 3
    parts = [msgspec.json.decode(message.body, type=Part) for message in queue.receive(10)]
    assert [(part.part, part.first) for part in parts[:3]] == [(0, 0), (1, 500), (2, 1000)]
    assert parts[:3] == parts[3:]
    assert [text for part in parts[:3] for text in read_texts(objects.get(part.key))] == texts


def parquet_of(**columns: list[object]) -> bytes:
    """A table, in several row groups."""
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, row_group_size=700)
    return file.getvalue()


def test_a_parquet_source() -> None:
    """The texts of its column, in their order, whatever else it holds; a repeat is the same."""
    objects, queue = MemoryObjects(), MemoryQueue()
    texts = [f"text {number}" for number in range(2 * PART_TEXTS + 1)]
    objects.contents[URI] = parquet_of(body=list(texts), other=list(range(len(texts))))
    for _ in range(2):
        assert split_source("j", Source(URI, "parquet", "body"), objects, queue) == 3
    parts = [msgspec.json.decode(message.body, type=Part) for message in queue.receive(10)]
    assert [text for part in parts[:3] for text in read_texts(objects.get(part.key))] == texts


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PAR1 is not enough", "no Parquet"),
        (b"", "no Parquet"),
        (parquet_of(text=["a"]), 'no column "body"'),
        (parquet_of(body=["a"] * 800 + [None]), 'row 801 of the source has no text in "body"'),
        (parquet_of(body=[1]), "row 1 of the source has no text"),
        (parquet_of(body=[]), "no texts"),
    ],
)
def test_parquet_sources_that_cannot_be_read(content: bytes, said: str) -> None:
    """Each with its reason, which holds no text."""
    objects = MemoryObjects()
    objects.contents[URI] = content
    with pytest.raises(BadSource, match=said):
        split_source("j", Source(URI, "parquet", "body"), objects, MemoryQueue())


WHOLE = parquet_of(body=[f"text {number} ü" for number in range(1500)])


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_damaged_parquet_sources(changes: list[tuple[int, int]]) -> None:
    """Whatever bytes are changed, it is read, or it is the source's own fault: its neighbours go on."""
    damaged = bytearray(WHOLE)
    for place, byte in changes:
        damaged[place] = byte
    with contextlib.suppress(BadSource):
        list(parquet_texts(Source(URI, "parquet", "body"), io.BytesIO(damaged)))


def test_a_parquet_source_that_cannot_be_reached() -> None:
    """A service that fails in the middle of it is waited for: the source is not to blame."""

    def read_range(first: int, last: int) -> bytes:
        if first < len(WHOLE) // 2:
            raise Unavailable("SlowDown")
        return WHOLE[first : last + 1]

    file = cast(BinaryIO, ObjectFile(read_range, len(WHOLE)))
    with pytest.raises(Unavailable, match="SlowDown"):
        list(parquet_texts(Source(URI, "parquet", "body"), file))


def test_empty_and_huge_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source without texts fails, and one with too many is refused before all of it is read."""
    objects, queue = MemoryObjects(), MemoryQueue()
    objects.contents[URI] = b"\n\n"
    with pytest.raises(BadSource, match="no texts"):
        split_source("j", LINES, objects, queue)
    monkeypatch.setattr("coldframe.jobs.sources.MAX_PARTS", 2)
    objects.contents[URI] = b'"a"\n' * (3 * PART_TEXTS)
    with pytest.raises(BadSource, match="more than 2 parts"):
        split_source("j", LINES, objects, queue)
    assert PART_BYTES < 256 * 1024
