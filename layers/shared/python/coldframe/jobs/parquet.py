"""Texts of a Parquet object: reads one column, some rows at a time.

It needs pyarrow, which is larger than the model. An image has pyarrow only if it was built with it.
"""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain, islice
from typing import TYPE_CHECKING

from coldframe.jobs.lines import MAX_ROW_BYTES
from coldframe.jobs.object_file import ObjectFile
from coldframe.jobs.ports import BadSource
from coldframe.jobs.records import PART_TEXTS, Source

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

NO_PYARROW = (
    "This deployment's image has no pyarrow, which Parquet needs. Send JSON Lines or CSV, or build and deploy"
    " it with the parameter ImageExtra=pyarrow."
)
MAX_COLUMN_BYTES = 256 << 20
"""Most uncompressed bytes of the column in one row group: memory holds all of them."""
_MAX_FOOTER_BYTES = 64 << 20
_TAIL_BYTES = 8  # the footer's size, and PAR1
_BLOCK_BYTES = 1 << 20  # of the column, in one read


def can_read_parquet() -> bool:
    """Whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def parquet_texts(source: Source, file: ObjectFile, first_row: int = 0) -> Iterator[str]:
    """Texts of a source from a row on. file: its object; closed at the end. Raises BadSource.

    Earlier row groups are not read.
    """
    if not can_read_parquet():
        raise BadSource(NO_PYARROW)
    import pyarrow as pa
    from pyarrow import parquet

    name = source.column
    try:
        with file:
            _check_footer(file)
            metadata = parquet.read_metadata(file)
            columns = _columns(metadata, name)
            groups, skipped = _groups_from(metadata, first_row)
            _check_sizes(metadata, name, columns, groups)
            # As a dictionary, a repeated text takes memory once.
            repeated = [name] if name in columns else []
            with parquet.ParquetFile(
                file, metadata=metadata, buffer_size=_BLOCK_BYTES, read_dictionary=repeated
            ) as table:
                batches = table.iter_batches(PART_TEXTS, row_groups=groups, columns=[name])
                values = chain.from_iterable(batch.column(0) for batch in batches)
                for row, value in enumerate(islice(values, skipped, None), first_row + 1):
                    yield _text(value.as_py(), row, name)
    except (
        pa.ArrowException,
        OSError,
        UnicodeDecodeError,
    ) as exc:  # pyarrow raises OSError for damaged files
        raise BadSource("the source is not Parquet, or is damaged. Check the file") from exc


def _text(value: object, row: int, column: str) -> str:
    if not isinstance(value, str):
        raise BadSource(f'row {row} of the source has no text in "{column}"')
    if len(value) > MAX_ROW_BYTES:
        raise BadSource(f"row {row} of the source has a text of more than {MAX_ROW_BYTES} characters")
    return value


def _check_footer(file: ObjectFile) -> None:
    """Raises BadSource for a footer that would not fit into memory."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
    tail = file.read(_TAIL_BYTES) or b""
    size_bytes = int.from_bytes(tail[:4], "little")
    if tail.endswith(b"PAR1") and size_bytes > _MAX_FOOTER_BYTES:
        raise BadSource(f"the source's footer has {size_bytes} bytes, expected {_MAX_FOOTER_BYTES} at most")


def _columns(metadata: "FileMetaData", name: str) -> dict[str, int]:
    """Numbers of the columns under a name, by path. Raises BadSource for a missing column."""
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    columns = {path: number for number, path in enumerate(paths) if path.partition(".")[0] == name}
    if not columns:
        raise BadSource(f'the source has no column "{name}". Choose one of its columns')
    return columns


def _groups_from(metadata: "FileMetaData", first_row: int) -> tuple[list[int], int]:
    """Row groups from a row on, and the number of rows before it in the first group."""
    before = 0
    for group in range(metadata.num_row_groups):
        after = before + metadata.row_group(group).num_rows
        if after > first_row:
            return list(range(group, metadata.num_row_groups)), first_row - before
        before = after
    return [], 0


def _check_sizes(metadata: "FileMetaData", name: str, columns: dict[str, int], groups: list[int]) -> None:
    """Raises BadSource for a column that would not fit into memory."""
    for group in groups:
        chunks = [metadata.row_group(group).column(number) for number in columns.values()]
        size_bytes = sum(chunk.total_uncompressed_size for chunk in chunks)
        if size_bytes > MAX_COLUMN_BYTES:
            raise BadSource(
                f'row group {group} of the source has {size_bytes} bytes in "{name}", expected at most'
                f" {MAX_COLUMN_BYTES}. Write smaller row groups"
            )
