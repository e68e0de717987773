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

from coldframe.arrow import answer_arrays
from coldframe.columns import predict_column
from coldframe.pipeline.models import load_predictor
from coldframe_local.batch.predict_file.errors import Stopped
from coldframe_local.batch.predict_file.parts import write_part

if TYPE_CHECKING:
    from coldframe.config import Settings
    from coldframe.pipeline.predictor import Predictor

_settings: "list[Settings]" = []
"""State of this process, which has one thread that answers."""


def start(settings: "Settings") -> None:
    """Prepares this process. It ends when the command does, also when the command is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which then ends this process
    _settings.append(settings)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def answer(path: Path, texts: Sequence[str | None], heads: Sequence[str], version: str) -> None:
    """Writes the answers of texts to `path`.

    version: of the model that the run was started with. Raises Stopped for another model, what
    `Predictor.predict` raises, and a BundleError.
    """
    predictor = _predictor()
    if predictor.manifest.version != version:
        raise Stopped(
            "The model was replaced while the file was answered: no part has answers of two models."
            " Run the same command again."
        )
    predictions = predict_column(predictor, texts, heads)
    columns: list[pa.Array] = []
    for head in heads:
        columns += answer_arrays(predictions[head], head)
    names = [str(number) for number in range(len(columns))]  # the run names them
    write_part(path, pa.table(columns, names))


@cache
def _predictor() -> "Predictor":
    """Loaded with the first part: what goes wrong then is that part's error, which the command shows."""
    predictor = load_predictor(_settings[0])
    if not _settings[0].max_batch_tokens:
        predictor.model.encoder.measure_budget()
    return predictor


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
