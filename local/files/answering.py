"""One process of several that answer the parts of a file: it loads the model once."""

import os
import signal
import threading
from collections.abc import Sequence
from functools import cache
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from coldframe.columns import Answer, predict_column
from coldframe.model.files import AUTO
from coldframe.pipeline.models import load_predictor
from local.files.parts import write_part

if TYPE_CHECKING:
    from coldframe.config import Settings
    from coldframe.pipeline.predictor import Predictor

_FIELDS = {
    "label": pa.string(),
    "probability": pa.float64(),  # float32 values, exactly: the numbers that the API gives
    "out_of_distribution": pa.float64(),
}

_settings: "list[Settings]" = []
"""Of this process, which has one thread that answers."""


def answer_fields(heads: Sequence[str], prefix: str) -> list[pa.Field]:
    """Columns of the answers. Several heads: each has columns of its own."""
    return [
        pa.field(f"{prefix}{name}_{head}" if len(heads) > 1 else f"{prefix}{name}", kind)
        for head in heads
        for name, kind in ({**_FIELDS, "by": pa.string()} if head == AUTO else _FIELDS).items()
    ]


def start(settings: "Settings") -> None:
    """Prepares this process. It ends when the command does, also when the command is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which then ends this process
    _settings.append(settings)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def answer(path: Path, texts: Sequence[str | None], heads: Sequence[str]) -> None:
    """Writes the answers of texts to `path`. Raises what `Predictor.predict` raises, and a BundleError."""
    found = predict_column(_predictor(), texts, heads)
    columns: list[pa.Array] = []
    for head in heads:
        columns += _columns(found[head], is_auto=head == AUTO)
    names = [str(number) for number in range(len(columns))]  # the run names them
    write_part(path, pa.table(columns, names))


@cache
def _predictor() -> "Predictor":
    """Loaded with the first part: what goes wrong then is that part's error, which the command shows."""
    predictor = load_predictor(_settings[0])
    if not _settings[0].max_batch_tokens:
        predictor.model.get().encoder.measure_budget()
    return predictor


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _columns(answers: Sequence[Answer | None], is_auto: bool) -> list[pa.Array]:
    columns = [
        pa.array([None if row is None else row.label for row in answers], pa.string()),
        pa.array([None if row is None else row.probability for row in answers], pa.float64()),
        pa.array([None if row is None else row.out_of_distribution for row in answers], pa.float64()),
    ]
    if is_auto:
        sources = [None if row is None or row.source is None else row.source.by for row in answers]
        columns.append(pa.array(sources, pa.string()))
    return columns
