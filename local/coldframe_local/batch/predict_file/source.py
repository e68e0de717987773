"""Files of texts as record batches: CSV, TSV, JSON Lines and Parquet, in memory that does not grow.

Of CSV every column is text as it stands in the file, and an empty cell without quotes is null: guessing
types from the first rows fails at the first row that is different.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyarrow import parquet as pq

from coldframe_local.batch.predict_file.errors import BadFile

ROWS = 1024  # of a part: enough texts of each length to fill passes, and work for all cores early
TEXT_BYTES = 1 << 20  # of a part, unless one text has more
_BLOCK_BYTES = 16 << 20  # of CSV; a row has to fit
_INT64_END, _INT64_DIGITS = 2**63, len("-9223372036854775808")
_EXPECTED = re.compile(r"Expected \d+ columns, got \d+")


class Source(NamedTuple):
    """A table in a file.

    batches: its rows, from the first, each time it is called; batches of any size.
    """

    path: Path
    column: str
    rows: int
    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]

    def parts(self) -> Iterator[pa.Table]:
        """The rows in parts, whose borders depend on nothing but the rows. Raises BadFile."""
        return cut(self.batches(), self.column)

    def texts(self, part: pa.Table) -> list[str | None]:
        """The texts of a part."""
        return part.column(self.column).to_pylist()  # type: ignore[no-any-return]


def open_source(path: Path, column: str) -> Source:
    """Reads the whole file once, so that a fault in it is found before anything is computed.

    The kind is told by the file's ending. Raises BadFile.
    """
    if not path.is_file():
        raise BadFile(f"{path} is not a file.")
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        raise BadFile(f"{path.name} has the ending {path.suffix!r}. Expected one of {', '.join(_OPENERS)}.")
    rows, schema, batches = opener(path)
    if column not in schema.names:
        raise BadFile(
            f"{path.name} has no column {column!r}. Columns: {', '.join(schema.names) or 'none'}."
            " Name the column of the texts with --text."
        )
    kind = schema.field(column).type
    if kind == pa.null():
        raise BadFile(f"{path.name}: column {column!r} holds nothing but nulls. Expected texts.")
    if not _is_text(kind):
        raise BadFile(f"{path.name}: column {column!r} holds {kind}. Expected texts (strings).")
    return Source(path, column, rows, schema, batches)


def cut(batches: Iterator[pa.RecordBatch], column: str) -> Iterator[pa.Table]:
    """Parts of at most ROWS rows and TEXT_BYTES of text, or of one row."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        start = 0
        for row, length in enumerate(_lengths(batch.column(column))):
            if rows and (rows == ROWS or size + length > TEXT_BYTES):
                pending.append(batch.slice(start, row - start))
                yield pa.Table.from_batches(pending)
                pending, start, rows, size = [], row, 0, 0
            rows, size = rows + 1, size + length
        pending.append(batch.slice(start))
    if rows:
        yield pa.Table.from_batches(pending)


def _lengths(texts: pa.Array) -> list[int]:
    """Bytes of each text."""
    counted = pc.fill_null(pc.binary_length(texts.cast(pa.large_string())), 0)
    return np.asarray(counted).tolist()  # type: ignore[no-any-return]


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return kind in (pa.string(), pa.large_string(), pa.string_view())


_Opened = tuple[int, pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]


def _open_csv(path: Path, delimiter: str = ",") -> _Opened:
    def batches() -> Iterator[pa.RecordBatch]:
        bad_rows: list[str] = []  # the first row of another number of cells
        try:
            names = _names(path, delimiter)
            with csv.open_csv(path, **_csv_options(names, delimiter, bad_rows)) as reader:
                yield from (batch for batch in reader if batch.num_rows)
        except (pa.ArrowInvalid, UnicodeDecodeError) as exc:
            raise BadFile(_csv_fault(path, str(exc), bad_rows)) from None  # the cause may quote a text

    return *_read_once(
        batches, lambda: pa.schema([(n, pa.string()) for n in _names(path, delimiter)])
    ), batches


def _names(path: Path, delimiter: str) -> list[str]:
    """Names of the columns, from the first row."""
    import csv as plain

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(plain.reader(file, delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise BadFile(f"{path.name} is not UTF-8. Convert it first.") from None
    if not names:
        raise BadFile(f"{path.name} is empty. Expected a first row with the names of the columns.")
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadFile(f"{path.name} has two columns {twice[0]!r}. Rename one.")
    return names


def _csv_options(names: list[str], delimiter: str, bad_rows: list[str]) -> dict[str, Any]:
    def refuse(row: Any) -> str:
        if not bad_rows:
            bad_rows.append(
                f"row {row.number - 1:,} has {row.actual_columns} cells, expected {row.expected_columns}"
            )
        return "error"

    return {
        # One thread: rows keep their numbers, for messages.
        "read_options": csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
        "parse_options": csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse
        ),
        "convert_options": csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    }


def _csv_fault(path: Path, message: str, bad_rows: list[str]) -> str:
    """Description of an error, without the text that arrow's message quotes."""
    if bad_rows:
        return f"{path.name}: {bad_rows[0]}. Quote texts that hold the delimiter or line breaks."
    if "UTF8" in message or "UTF-8" in message:
        return f"{path.name} is not UTF-8. Convert it first."
    if "straddling" in message:
        return (
            f"{path.name} has a row of more than {_BLOCK_BYTES:,} bytes, or a quote that never ends."
            " Close the quote, or write the table as Parquet."
        )
    return f"{path.name} cannot be read as CSV. Check quotes and delimiters, or write the table as Parquet."


def _open_jsonl(path: Path) -> _Opened:
    def rows() -> Iterator[list[dict[str, Any]]]:
        with path.open(encoding="utf-8-sig") as lines:
            numbered = (entry for entry in enumerate(lines, 1) if entry[1].strip())
            try:
                while chunk := [_object(path, *line) for line in islice(numbered, ROWS)]:
                    yield chunk
            except UnicodeDecodeError:
                raise BadFile(f"{path.name} is not UTF-8. Convert it first.") from None

    count, schema = 0, pa.schema([])
    for chunk in rows():
        count += len(chunk)
        try:
            own = pa.Table.from_pylist(chunk, _columns(chunk)).schema
            schema = pa.unify_schemas([schema, own], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
            raise BadFile(_mixed(path, count - len(chunk) + 1, count)) from None

    def batches() -> Iterator[pa.RecordBatch]:
        for chunk in rows():
            yield from pa.Table.from_pylist(chunk, schema).to_batches()

    return count, schema, batches


def _columns(chunk: list[dict[str, Any]]) -> pa.Schema:
    """Columns of all objects, not of the first alone; arrow names no column in its error."""
    names = dict.fromkeys(name for row in chunk for name in row)
    return pa.schema([(name, pa.array([row.get(name) for row in chunk]).type) for name in names])


def _mixed(path: Path, first: int, last: int) -> str:
    return (
        f"{path.name}: objects {first:,} to {last:,} hold values of different types under one name, or"
        " text that is not Unicode. Give each name values of one type."
    )


class _NumberTooLarge(ValueError):
    """A whole number that int64 does not hold."""


def _whole_number(digits: str) -> int:
    value = int(digits) if len(digits) <= _INT64_DIGITS else _INT64_END
    if not -_INT64_END <= value < _INT64_END:
        raise _NumberTooLarge
    return value


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_int=_whole_number)
    except _NumberTooLarge:
        raise BadFile(
            f"{path.name}:{number} has a whole number over 64 bits, which no table holds. Write it as text."
        ) from None
    except RecursionError:
        raise BadFile(
            f"{path.name}:{number} has values in one another too deep to be read. Write them as text."
        ) from None
    except ValueError:
        raise BadFile(f"{path.name}:{number} is not JSON. Expected one object on every line.") from None
    if not isinstance(value, dict):
        raise BadFile(f"{path.name}:{number} is not a JSON object. Expected one object on every line.")
    return value


def _open_parquet(path: Path) -> _Opened:
    try:
        with pq.ParquetFile(path) as file:
            rows, schema = file.metadata.num_rows, file.schema_arrow
    except (pa.ArrowInvalid, OSError):
        raise BadFile(
            f"{path.name} cannot be read as Parquet. Write it again, or give it its own ending."
        ) from None

    def batches() -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=ROWS)

    return rows, schema, batches


def _read_once(
    batches: Callable[[], Iterator[pa.RecordBatch]], schema: Callable[[], pa.Schema]
) -> tuple[int, pa.Schema]:
    return sum(batch.num_rows for batch in batches()), schema()


_OPENERS: dict[str, Callable[[Path], _Opened]] = {
    ".csv": _open_csv,
    ".tsv": lambda path: _open_csv(path, "\t"),
    ".jsonl": _open_jsonl,
    ".ndjson": _open_jsonl,
    ".parquet": _open_parquet,
}
