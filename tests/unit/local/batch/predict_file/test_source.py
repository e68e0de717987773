"""Tables are read as they stand, in parts that depend on the rows alone; a fault is named without a text."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_local.batch.predict_file.errors import BadFile
from coldframe_local.batch.predict_file.sink import SINKS, check_schema, open_sink
from coldframe_local.batch.predict_file.source import ROWS, TEXT_BYTES, cut, open_source

SECRET = "a private letter"


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows_of(path: Path, column: str = "body") -> list[dict[str, Any]]:
    return [row for part in open_source(path, column).parts() for row in part.to_pylist()]


def test_csv_is_text_as_it_stands(tmp_path: Path) -> None:
    """Numbers, NA and leading zeros stay what they are; an empty cell is null unless it is quoted."""
    path = write(tmp_path / "a.csv", '\ufeffid,body\n007,"two\nlines"\nNA,\n1e5,""\n')
    assert rows_of(path) == [
        {"id": "007", "body": "two\nlines"},
        {"id": "NA", "body": None},
        {"id": "1e5", "body": ""},
    ]


def test_json_lines_with_columns_that_come_late(tmp_path: Path) -> None:
    """A name that only later objects have is null in the earlier ones; whole numbers become as their rest."""
    lines = [{"body": "x", "n": 1}] * (ROWS + 1) + [{"body": None, "n": 0.5, "late": [1]}]
    path = write(tmp_path / "a.jsonl", "\n\n".join(map(json.dumps, lines)))
    rows = rows_of(path)
    assert len(rows) == ROWS + 2
    assert rows[0] == {"body": "x", "n": 1.0, "late": None}
    assert rows[-1] == {"body": None, "n": 0.5, "late": [1]}


def test_json_lines_with_a_byte_order_mark(tmp_path: Path) -> None:
    """A byte order mark at the start is not a part of the first object; int64 keeps its bounds."""
    row = {"body": "x", "n": -(2**63), "m": 2**63 - 1}
    assert rows_of(write(tmp_path / "a.jsonl", "\ufeff" + json.dumps(row))) == [row]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet(tmp_path: Path, kind: pa.DataType) -> None:
    """Texts of a Parquet file may be strings of any layout."""
    table = pa.table({"body": pa.array(["a", None, "a"]).cast(kind)})
    pq.write_table(table, tmp_path / "a.parquet")
    assert [row["body"] for row in rows_of(tmp_path / "a.parquet")] == ["a", None, "a"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", f"id,body\n1,x\n2,{SECRET},y\n", "row 2 has 3 cells, expected 2"),
        ("a.csv", b"id,body\n1,\xff\n", "is not UTF-8"),
        ("a.csv", "", "is empty"),
        ("a.csv", "body,body\nx,y\n", "two columns 'body'"),
        ("a.csv", "id\n1\n", "no column 'body'. Columns: id"),
        ("a.jsonl", f'{{"body": "x"}}\n{SECRET}\n', "a.jsonl:2 is not JSON"),
        ("a.jsonl", '["x"]\n', "a.jsonl:1 is not a JSON object"),
        ("a.jsonl", f'{{"body": "{SECRET}"}}\n{{"body": 1}}\n', "objects 1 to 2 hold values"),
        ("a.jsonl", '{"body": "\\ud800"}\n', "not Unicode"),
        ("a.jsonl", b'{"body": "\xff"}\n', "is not UTF-8"),
        ("a.jsonl", '{"body": 1}\n', "holds int64. Expected texts"),
        ("a.jsonl", '{"body": null}\n', "nothing but nulls"),
        ("a.jsonl", '{"body": "x", "n": 9223372036854775808}\n', "a.jsonl:1 has a whole number over 64 bits"),
        ("a.jsonl", '{"body": "x", "n": ' + "9" * 5000 + "}\n", "a.jsonl:1 has a whole number over 64 bits"),
        ("a.jsonl", '{"body": "x", "n": ' + "[" * 100_000, "a.jsonl:1 has values in one another too deep"),
        ("a.jsonl", "", "no column 'body'. Columns: none"),
        ("a.parquet", SECRET, "cannot be read as Parquet"),
        ("a.xlsx", SECRET, "ending '.xlsx'. Expected one of .csv"),
    ],
)  # fmt: skip
def test_faults(tmp_path: Path, name: str, content: str | bytes, said: str) -> None:
    """A table with a fault is refused; the message says where, and quotes no text."""
    path = write(tmp_path / name, content)
    with pytest.raises(BadFile) as caught:
        open_source(path, "body")
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(BadFile, match=r"none\.csv is not a file"):
        open_source(tmp_path / "none.csv", "body")


@given(
    lengths=st.lists(st.one_of(st.none(), st.integers(0, 40)), max_size=200),
    borders=st.lists(st.integers(0, 200), max_size=10),
)
def test_parts_depend_on_the_rows_alone(lengths: list[int | None], borders: list[int]) -> None:
    """However a table is read, its parts are the same, and together they are the table."""
    table = pa.table(
        {"body": pa.array([None if n is None else "x" * n * 10_000 for n in lengths], pa.string())}
    )
    at_once = list(cut(iter(table.to_batches()), "body"))
    pieces = [0, *sorted(min(border, len(lengths)) for border in borders), len(lengths)]
    batches = [batch for a, b in pairwise(pieces) for batch in table.slice(a, b - a).to_batches()]
    in_pieces = list(cut(iter(batches), "body"))
    assert [part.to_pydict() for part in in_pieces] == [part.to_pydict() for part in at_once]
    assert [row for part in at_once for row in part.to_pylist()] == table.to_pylist()
    for part in at_once:
        assert part.num_rows == 1 or sum(len(text or "") for text in part["body"].to_pylist()) <= TEXT_BYTES


def test_parts_have_few_rows() -> None:
    """Short texts are cut into parts by their number."""
    table = pa.table({"body": ["x"] * (2 * ROWS + 1)})
    assert [part.num_rows for part in cut(iter(table.to_batches()), "body")] == [ROWS, ROWS, 1]


@pytest.mark.parametrize("ending", SINKS)
def test_every_kind_is_written_as_it_is_read(tmp_path: Path, ending: str) -> None:
    """What is written in any of the kinds is read again: texts, nulls, empty texts, exact numbers."""
    schema = pa.schema([("body", pa.string()), ("p", pa.float64())])
    rows: list[dict[str, Any]] = [
        {"body": 'a, "b"\n\tc', "p": 0.1 + 0.2},
        {"body": None, "p": None},
        {"body": "", "p": 1.0},
    ]
    path = tmp_path / f"a{ending}"
    sink = open_sink(path, ending, schema)
    sink.write(pa.Table.from_pylist(rows[:1], schema))
    sink.write(pa.Table.from_pylist(rows[1:], schema))
    sink.close()
    read = rows_of(path)
    assert [row["body"] for row in read] == [row["body"] for row in rows]
    assert [None if row["p"] is None else float(str(row["p"])) for row in read] == [row["p"] for row in rows]


def test_csv_takes_no_lists(tmp_path: Path) -> None:
    """A column of lists cannot be written as CSV; the error names what can."""
    with pytest.raises(BadFile, match="Write Parquet or JSON Lines"):
        check_schema(tmp_path / "a.csv", pa.schema([("x", pa.list_(pa.int64()))]))
