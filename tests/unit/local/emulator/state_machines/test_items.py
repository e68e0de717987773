"""How an object becomes items."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_local.emulator.state_machines.definition import InputType, ReaderConfig
from coldframe_local.emulator.state_machines.items import ItemsUnusable, read_items

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), max_size=20)


def read(body: bytes, kind: InputType, **config: Any) -> list[Any]:
    return list(read_items(io.BytesIO(body), ReaderConfig(kind, **config)))


@given(st.lists(st.tuples(CELLS, CELLS), max_size=20))
def test_csv_cells_survive(rows: list[tuple[str, str]]) -> None:
    """Commas, quotes, line ends and any characters inside cells are read as they were written."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *rows])
    assert read(text.getvalue().encode(), "CSV") == [{"a": a, "b": b} for a, b in rows]


def test_csv_has_the_delimiters_and_headers_of_the_definition() -> None:
    """A delimiter by its name, a header that is given, a byte order mark, and a bound on items."""
    body = "\ufeffa|b\n1|2\n".encode()
    assert read(body, "CSV", CSVDelimiter="PIPE") == [{"a": "1", "b": "2"}]
    given_header = read(b"1,2\n3,4\n", "CSV", CSVHeaderLocation="GIVEN", CSVHeaders=["x", "y"], MaxItems=1)
    assert given_header == [{"x": "1", "y": "2"}]


@given(st.lists(st.one_of(CELLS, st.integers(-9, 9), st.dictionaries(CELLS, CELLS, max_size=2)), max_size=9))
def test_json_lines_and_arrays_hold_the_same_items(items: list[Any]) -> None:
    """Values of any kind, one in each line or in one array; empty lines are none."""
    lines = "\n\n".join(json.dumps(item) for item in items)
    assert read(lines.encode(), "JSONL") == items
    assert read(json.dumps(items).encode(), "JSON") == items


def test_json_lines_with_a_byte_order_mark() -> None:
    """A byte order mark is not a part of the first item; whole numbers have any length."""
    assert read(b"\xef\xbb\xbf[1]\n123456789012345678901234567890\n", "JSONL") == [
        [1],
        123456789012345678901234567890,
    ]


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"a,b\n1\n", "CSV", "Row 0 of the CSV object has not as many cells as its header, 2"),
        (b"a,b\n1,2,3\n", "CSV", "Row 0"),
        (b"a\n\xff\n", "CSV", "not UTF-8"),
        (b"{}\n{secret", "JSONL", "Line 1 of the object is not JSON"),
        (b"[" * 100_000, "JSONL", "Line 0 of the object is not JSON, or nests too deep"),
        (b"[" * 100_000, "JSON", "nests too deep"),
        (b"{}", "JSON", "no array"),
        (b"{} {}", "JSON", "say JSONL"),
        (b"PAR0", "PARQUET", "Parquet"),
    ],
)
def test_what_is_wrong_is_named_without_its_text(body: bytes, kind: InputType, message: str) -> None:
    """A damaged object says where it is damaged."""
    with pytest.raises(ItemsUnusable, match=message) as caught:
        read(body, kind)
    assert "secret" not in str(caught.value)
