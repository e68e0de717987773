"""Texts of a Parquet object: of its column alone, some rows at a time.

It needs pyarrow, which is larger than the model: an image has it only where somebody has added it.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from typing import BinaryIO

from coldframe.jobs.ports import BadSource
from coldframe.jobs.records import PART_TEXTS, Source

NO_PYARROW = (
    "This deployment's image has no pyarrow, which Parquet needs. Send JSON Lines or CSV, or build and deploy"
    " it with the parameter ImageExtra=pyarrow."
)
_BLOCK_BYTES = 1 << 20  # of the column, read at once


def can_read_parquet() -> bool:
    """Whether pyarrow is there."""
    return find_spec("pyarrow") is not None


def parquet_texts(source: Source, file: BinaryIO) -> Iterator[str]:
    """The texts of a source. file: its object; closed at the end. Raises BadSource."""
    if not can_read_parquet():
        raise BadSource(NO_PYARROW)
    import pyarrow as pa
    from pyarrow import parquet

    rows = count(1)
    try:
        with file, parquet.ParquetFile(file, buffer_size=_BLOCK_BYTES) as table:
            if source.column not in table.schema_arrow.names:
                raise BadSource(f'the source has no column "{source.column}"')
            for batch in table.iter_batches(PART_TEXTS, columns=[source.column]):
                for text, row in zip(batch.column(0).to_pylist(), rows, strict=False):
                    if not isinstance(text, str):
                        raise BadSource(f'row {row} of the source has no text in "{source.column}"')
                    yield text
    except (pa.ArrowException, OSError, UnicodeDecodeError) as exc:  # OSError: how pyarrow calls damage
        raise BadSource("the source is no Parquet, or is damaged") from exc
