"""Tables to files: CSV, TSV, JSON Lines and Parquet, part by part."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pyarrow as pa
from pyarrow import csv
from pyarrow import parquet as pq

from coldframe_local.batch.predict_file.errors import BadFile


class Sink(Protocol):
    """Writer of a table, part by part."""

    def write(self, part: pa.Table) -> None: ...

    def close(self) -> None: ...


class _JsonLines:
    """One object per row."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def write(self, part: pa.Table) -> None:
        self._file.writelines(msgspec.json.encode(row) + b"\n" for row in part.to_pylist())

    def close(self) -> None:
        self._file.close()


class _Arrow:
    """A writer of pyarrow's."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, part: pa.Table) -> None:
        self._writer.write_table(part)

    def close(self) -> None:
        self._writer.close()


def _csv(path: Path, schema: pa.Schema, delimiter: str = ",") -> Sink:
    return _Arrow(csv.CSVWriter(path, schema, write_options=csv.WriteOptions(delimiter=delimiter)))


SINKS: dict[str, Callable[[Path, pa.Schema], Sink]] = {
    ".csv": _csv,
    ".tsv": lambda path, schema: _csv(path, schema, "\t"),
    ".jsonl": lambda path, schema: _JsonLines(path),
    ".ndjson": lambda path, schema: _JsonLines(path),
    ".parquet": lambda path, schema: _Arrow(pq.ParquetWriter(path, schema)),
}


def check_sink(path: Path) -> None:
    """Raises BadFile for a place that nothing can be written to."""
    if path.suffix.lower() not in SINKS:
        raise BadFile(f"{path.name} has the ending {path.suffix!r}. Expected one of {', '.join(SINKS)}.")
    if not path.parent.is_dir():
        raise BadFile(f"{path.parent} is not a folder to write to. Make it, or choose another.")


def check_schema(path: Path, schema: pa.Schema) -> None:
    """Raises BadFile for a column that the kind of file cannot hold."""
    for field in schema:
        if path.suffix.lower() in (".csv", ".tsv") and pa.types.is_nested(field.type):
            raise BadFile(
                f"Column {field.name!r} holds {field.type}, which {path.name} cannot."
                " Write Parquet or JSON Lines."
            )


def open_sink(path: Path, kind: str, schema: pa.Schema) -> Sink:
    """A writer to `path` of the kind that the ending `kind` names."""
    return SINKS[kind.lower()](path, schema)
