"""Answers as Arrow columns, for tables in files and in Spark."""

from collections.abc import Sequence

import pyarrow as pa

from coldframe.columns import Answer
from coldframe.model.files import AUTO

_FIELDS = {
    "label": pa.string(),
    "probability": pa.float64(),  # float32 values, exactly: the numbers of the API
    "out_of_distribution": pa.float64(),
}


def answer_fields(heads: Sequence[str], prefix: str = "") -> list[pa.Field]:
    """Columns of the answers. With several heads, each has its own columns."""
    return [
        pa.field(f"{prefix}{name}_{head}" if len(heads) > 1 else f"{prefix}{name}", kind)
        for head in heads
        for name, kind in ({**_FIELDS, "by": pa.string()} if head == AUTO else _FIELDS).items()
    ]


def answer_arrays(answers: Sequence[Answer | None], head: str) -> list[pa.Array]:
    """The columns of one head's answers, named as in `answer_fields`; null for a row without a text."""
    columns = [
        pa.array([None if row is None else row.label for row in answers], pa.string()),
        pa.array([None if row is None else row.probability for row in answers], pa.float64()),
        pa.array([None if row is None else row.out_of_distribution for row in answers], pa.float64()),
    ]
    if head == AUTO:
        sources = [None if row is None or row.source is None else row.source.by for row in answers]
        columns.append(pa.array(sources, pa.string()))
    return columns
