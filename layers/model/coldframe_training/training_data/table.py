"""A table of texts and labels from a file: CSV, TSV, JSON Lines or Parquet."""

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec


class TableFault(Exception):
    """A file that cannot be trained on. The message has row numbers and counts, never a text."""


class MissingColumns(TableFault):
    """A table lacks a requested column. columns: the columns of the table, if they have names."""

    def __init__(self, message: str, columns: list[str]) -> None:
        super().__init__(message)
        self.columns = columns


class Columns(NamedTuple):
    """Names of the columns to read."""

    text: str
    label: str
    group: str | None = None

    @property
    def named(self) -> list[str]:
        """Columns that the file must have."""
        return [name for name in self if name is not None]


class Table(NamedTuple):
    """Cells by row; empty where the file has nothing. The first row of data has the number 1.

    groups: what each row belongs to, such as a thread or a customer; None without such a column.
    """

    texts: list[str]
    labels: list[str]
    groups: list[str] | None

    def take(self, rows: Sequence[int]) -> "Table":
        """Some of the rows, by position."""
        groups = None if self.groups is None else [self.groups[row] for row in rows]
        return Table([self.texts[row] for row in rows], [self.labels[row] for row in rows], groups)


_SEPARATORS = ",;\t|"
_DELIMITED = (".csv", ".tsv")
_NAME = re.compile(r"[^\W\d][\w.-]{0,39}([ /][\w.-]{1,20}){0,2}")  # a column's: up to three words
_NOT_A_COLUMN = "\0"
_NO_HEADER = "Its first row looks like data. Add a first row with the names of the columns."
_HINTS = {
    ".xlsx": "Save the sheet as CSV UTF-8.",
    ".xls": "Save the sheet as CSV UTF-8.",
    ".json": "Write an object per line: jq -c '.[]' table.json > table.jsonl.",
}

Records = Iterator[Sequence[Any]]
"""Cells of the asked-for columns, row by row."""


def read_table(path: Path, columns: Columns, separator: str | None = None) -> Table:
    """The table in a file; its kind is told by the file's ending.

    separator: of the cells of CSV; without, what separates the names of the columns. Raises TableFault.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        endings = ", ".join(_READERS)
        hint = _HINTS.get(path.suffix.lower(), "Save the table in one of these forms.")
        raise TableFault(f"{path.name} has the ending {path.suffix!r}. Expected one of {endings}. {hint}")
    if separator and path.suffix.lower() not in _DELIMITED:
        raise TableFault(f"--separator is for CSV and TSV; {path.name} is neither. Leave it out.")
    if not path.stat().st_size:
        raise TableFault(f"{path.name} is empty. Expected a table with a row of column names.")
    rows = list(_read_delimited(path, columns, separator) if separator else reader(path, columns))
    if not rows:
        raise TableFault(f"{path.name} has no rows.")
    cells = list(zip(*rows, strict=True))
    refuse_lists(path, columns.label, cells[1])
    strings = [[_to_string(cell) for cell in column] for column in cells]
    return Table(strings[0], strings[1], strings[2] if len(strings) > 2 else None)


def refuse_lists(path: Path, column: str, labels: Sequence[Any]) -> None:
    """Raises TableFault when a cell holds several labels."""
    rows = [number for number, cell in enumerate(labels, 1) if _is_list(cell)]
    if rows:
        raise TableFault(
            f"{path.name}: column {column!r} holds a list of labels in {count_rows(rows)}."
            " A text has one label here: lists of labels (multi-label) are not supported yet."
        )


def count_rows(numbers: Sequence[int], limit: int = 5) -> str:
    """How many rows, and the first of their numbers."""
    first = ", ".join(map(str, numbers[:limit])) + (", …" if len(numbers) > limit else "")
    return f"{len(numbers):,} row{'s' * (len(numbers) > 1)} ({first})"


def _is_list(cell: object) -> bool:
    if not isinstance(cell, str):
        return isinstance(cell, Sequence)
    if not (cell.startswith("[") and cell.endswith("]")):
        return False
    try:
        return isinstance(json.loads(cell.replace("'", '"')), list)
    except ValueError:
        return False


def _to_string(cell: object) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    return "" if cell is None else str(cell)


def _places(
    path: Path, header: Sequence[str], columns: Columns, rows: Sequence[Sequence[str]] | None = None
) -> list[int]:
    """Positions of the requested columns. Raises TableFault with the columns that are missing or occur twice.

    rows: those below, if `found` may be a row of data, which is not repeated.
    """
    if missing := [name for name in columns.named if name not in header]:
        names = ", ".join(map(repr, missing))
        is_header = rows is None or _is_header(header, rows)
        theirs = f"Its columns: {', '.join(header)}. Name one of them." if is_header else _NO_HEADER
        columns_found = list(header) if is_header else []
        raise MissingColumns(f"{path.name} has no column {names}. {theirs}", columns_found)
    if twice := [name for name in columns.named if header.count(name) > 1]:
        raise TableFault(
            f"{path.name} has {header.count(twice[0])} columns named {twice[0]!r}. Expected one."
        )
    return [header.index(name) for name in columns.named]


def _decode(path: Path) -> str:
    content = path.read_bytes()
    if content[:4] == b"PK\x03\x04":
        raise TableFault(f"{path.name} is an Excel workbook or another zip archive. {_HINTS['.xlsx']}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            hint = "Save it as UTF-8, or convert it: iconv -f UTF-16 -t UTF-8."
            raise TableFault(f"{path.name} is UTF-16, expected UTF-8. {hint}") from exc
        lines = [number for number, line in enumerate(content.split(b"\n"), 1) if not _is_utf8(line)]
        problem = f"{path.name} is not UTF-8: {len(lines):,} lines are not, the first is line {lines[0]}"
        raise TableFault(f"{problem}. Save it as UTF-8, or convert it: iconv -f ENCODING -t UTF-8.") from exc


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read_delimited(path: Path, columns: Columns, separator: str | None) -> Records:
    csv.field_size_limit(sys.maxsize)
    text = _decode(path)
    delimiter = separator or _guess_separator(text, columns)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
        cells = [row for row in rows if row]
        places = _places(path, header, columns, cells)
    except csv.Error as exc:
        hint = "A quote that opens a cell has to be closed, and is doubled inside it."
        raise TableFault(f"{path.name} cannot be read near line {rows.line_num}: {exc}. {hint}") from exc
    if ragged := [number for number, row in enumerate(cells, 1) if len(row) != len(header)]:
        raise TableFault(
            f"{path.name} has {len(header)} columns; another number of cells is in {count_rows(ragged)}."
            " A text with the delimiter or a line end in it has to be in double quotes."
        )
    return ([row[place] for place in places] for row in cells)


def _guess_separator(text: str, columns: Columns) -> str:
    """The separator with which the first row has the columns asked for, else the one with the most cells."""
    headers = {separator: _first_row(text, separator) for separator in _SEPARATORS}
    for separator, header in headers.items():
        if set(columns.named) <= set(header):
            return separator
    return max(headers, key=lambda separator: len(headers[separator]))


def _first_row(text: str, separator: str) -> list[str]:
    """Empty where the first row cannot be read so."""
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True), [])
    except csv.Error:
        return []


def _is_header(cells: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first row has names: short, each once, and no name occurs again in its column."""
    if len(set(cells)) < len(cells) or not all(_NAME.fullmatch(cell) for cell in cells):
        return False
    return not any(cell == other for row in rows for cell, other in zip(cells, row, strict=False))


def _read_json_lines(path: Path, columns: Columns) -> Records:
    text = _decode(path)
    if text.lstrip().startswith("["):
        raise TableFault(f"{path.name} is an array, expected one JSON object per line. {_HINTS['.json']}")
    lines = [line for line in enumerate(text.split("\n"), 1) if line[1].strip()]
    records: list[dict[str, Any]] = []
    broken: list[int] = []
    for number, line in lines:
        try:
            records.append(msgspec.json.decode(line, type=dict[str, Any]))
        except msgspec.MsgspecError:
            broken.append(number)
    if broken:
        raise TableFault(f"{path.name}: no JSON object is in {count_rows(broken)}. Expected one per line.")
    _places(path, list(dict.fromkeys(name for record in records for name in record)), columns)
    return ([record.get(name) for name in columns.named] for record in records)


def _read_parquet(path: Path, columns: Columns) -> Records:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            _places(path, file.schema_arrow.names, columns)
            rows = file.read(columns=list(dict.fromkeys(columns.named))).to_pylist()
    except pyarrow.ArrowException as exc:
        raise TableFault(
            f"{path.name} cannot be read as Parquet ({type(exc).__name__}). Write the file again."
        ) from exc
    return ([row[name] for name in columns.named] for row in rows)


_READERS: dict[str, Callable[[Path, Columns], Iterable[Sequence[Any]]]] = {
    ".csv": lambda path, columns: _read_delimited(path, columns, None),
    ".tsv": lambda path, columns: _read_delimited(path, columns, "\t"),
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".parquet": _read_parquet,
}


def column_names(path: Path) -> list[str]:
    """Names of the columns of a table; none where the first row may be data. Raises TableFault."""
    try:
        read_table(path, Columns(_NOT_A_COLUMN, _NOT_A_COLUMN))
    except MissingColumns as exc:
        return exc.columns
    return []


def main(path: Path) -> None:
    """Prints the names of a table's columns: `python -m coldframe_training.training_data.table FILE`."""
    try:
        names = column_names(path)
    except TableFault as exc:
        sys.exit(f"Error: {exc}")
    print(f"Columns of {path.name}: {', '.join(names)}" if names else _NO_HEADER, file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
