"""Predictions in Spark: adds columns of answers to a data frame with a column of texts.

Spark starts one Python process for each core of an executor and keeps it: each process loads the model once.
Rows of a partition are gathered, classified once for each distinct text, and encoded sorted by length.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coldframe.arrow import answer_arrays, answer_fields
from coldframe.columns import predict_column
from coldframe.config import load_settings
from coldframe.errors import Invalid
from coldframe.model.files import AUTO
from coldframe.pipeline.models import chosen, load_predictor
from coldframe.pipeline.predictor import Predictor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = 16_384
TEXT_BYTES = 16 << 20
"""Rows and bytes of text to gather: Spark sends at most 10,000 rows at a time."""

_loading = threading.Lock()
_loaded: dict[tuple[str, str], Predictor] = {}
"""Predictors of this process, by folder and name of their model; read and written under the lock."""


def predict(
    frame: "DataFrame",
    column: str,
    folder: Path | str | None = None,
    model: str | None = None,
    heads: Sequence[str] = (AUTO,),
    prefix: str = "",
) -> "DataFrame":
    """The rows of a frame, in their order within each partition, with answers in further columns.

    column: a column of strings; null gets null.
    folder: of encoders and models, on every executor; default: COLDFRAME_MODEL_DIR there.
    model: a name; default: the first of COLDFRAME_MODELS there, else the folder's default model.
    heads: with several heads, each has its own columns.
    Raises Invalid for a column that is missing, not of strings, or would be overwritten.
    """
    from pyspark.sql.types import StringType, StructType

    kinds = {field.name: field.dataType for field in frame.schema.fields}
    if not isinstance(kinds.get(column), StringType):
        kind = kinds[column].simpleString() if column in kinds else "missing"
        raise Invalid(
            f"The column {column!r} is {kind}, expected a string. Choose one of: {', '.join(kinds)}."
        )
    added = _spark_fields(heads, prefix)
    if twice := [field.name for field in added if field.name in kinds]:
        raise Invalid(
            f"The frame has a column {twice[0]!r} already. Name the columns of the answers by `prefix`."
        )
    schema = StructType([*frame.schema.fields, *added])
    place = None if folder is None else str(folder)
    work = partial(
        _answer_partition, column=column, folder=place, model=model, heads=tuple(heads), prefix=prefix
    )
    return frame.mapInArrow(work, schema)


def answer_batches(
    batches: Iterable[pa.RecordBatch],
    predictor: Predictor,
    column: str,
    heads: Sequence[str],
    prefix: str = "",
) -> Iterator[pa.RecordBatch]:
    """Batches with the columns of answers, rows in their order. Raises the errors of `Predictor.predict`."""
    predictor.check_heads(heads)
    for part in _gathered(batches, column):
        texts = part.column(column).to_pylist()
        answers = predict_column(predictor, texts, heads)
        arrays = [array for head in heads for array in answer_arrays(answers[head], head)]
        for field, array in zip(answer_fields(heads, prefix), arrays, strict=True):
            part = part.append_column(field, array)
        yield from part.combine_chunks().to_batches()


def _answer_partition(
    batches: Iterable[pa.RecordBatch],
    column: str,
    folder: str | None,
    model: str | None,
    heads: Sequence[str],
    prefix: str,
) -> Iterator[pa.RecordBatch]:
    """Function that an executor runs for each partition."""
    yield from answer_batches(batches, _predictor(folder, model), column, heads, prefix)


def _predictor(folder: str | None, model: str | None) -> Predictor:
    """The predictor of this process. Raises BadSetting or a BundleError."""
    settings = chosen(load_settings(os.environ), folder, model)
    key = (str(settings.model_dir), settings.models)
    with _loading:
        if key not in _loaded:
            _loaded[key] = load_predictor(settings)
        return _loaded[key]


def _gathered(batches: Iterable[pa.RecordBatch], column: str) -> Iterator[pa.Table]:
    """Groups of batches."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        texts = sum(waiting.column(column).nbytes for waiting in pending)
        if sum(waiting.num_rows for waiting in pending) >= ROWS or texts >= TEXT_BYTES:
            yield pa.Table.from_batches(pending)
            pending = []
    if pending:
        yield pa.Table.from_batches(pending)


def _spark_fields(heads: Sequence[str], prefix: str) -> list[Any]:
    from pyspark.sql.types import DoubleType, StringType, StructField

    return [
        StructField(field.name, StringType() if field.type == pa.string() else DoubleType())
        for field in answer_fields(heads, prefix)
    ]
