"""SQL functions inside DuckDB, in this process: `topic`, `topic_score`, `is_topic`, `embedding`.

DuckDB sends up to 2,048 rows at a time, as Arrow columns. Equal texts among them are classified once, all
processors encode them, and the predictor's cache shares results between functions.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from coldframe.config import load_settings
from coldframe.cpus import usable_cpus
from coldframe.pipeline.models import chosen, load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.setting_facts import RANGES
from coldframe.sql.functions import SqlFunctions
from coldframe.sql.rejecting import EXACT


class Functions:
    """The functions of one model, over Arrow columns of any number of rows. Safe for threads."""

    def __init__(self, functions: SqlFunctions, dimension: int) -> None:
        self._functions, self._dimension = functions, dimension

    def topic(self, texts: pa.ChunkedArray) -> pa.Array:
        """The label of each text; null for null, and where the head abstains."""
        return pa.array(self._functions.topic(texts.to_pylist()), pa.string())

    def topic_score(self, texts: pa.ChunkedArray, labels: pa.ChunkedArray) -> pa.Array:
        """The probability of a label for each text; null where either is null. Raises Invalid."""
        return pa.array(self._functions.topic_score(texts.to_pylist(), labels.to_pylist()), pa.float64())

    def is_topic(self, texts: pa.ChunkedArray, labels: pa.ChunkedArray) -> pa.Array:
        """Whether the label of each text is this one; null where either is null. Raises Invalid."""
        return pa.array(self._functions.is_topic(texts.to_pylist(), labels.to_pylist()), pa.bool_())

    def embedding(self, texts: pa.ChunkedArray) -> pa.Array:
        """The embedding (d,) of each text; null for null."""
        rows = self._functions.embedding(texts.to_pylist())
        return pa.array(rows, pa.list_(pa.float32(), self._dimension))


def register(
    connection: duckdb.DuckDBPyConnection,
    folder: Predictor | Path | str | None = None,
    model: str | None = None,
    head: str | None = None,
    prefix: str = "",
    rejecting_odds: float = EXACT,
) -> None:
    """Adds the functions to a connection; every query of it may use them.

    folder: of encoders and models; default: COLDFRAME_MODEL_DIR. Every processor runs a pass, unless
    COLDFRAME_PASSES sets another number. A predictor in place of a folder is used unchanged.
    model: a name; default: the first of COLDFRAME_MODELS, else the folder's default model.
    head: default: the model's.
    prefix: of the functions' names, where several models are registered.
    rejecting_odds: by default `is_topic` agrees exactly with `topic`. A finite number makes it quicker and
    lets it miss rows: see `are_topic`.
    Raises BadSetting, a BundleError, and Invalid for an unknown head.
    """
    predictor = folder if isinstance(folder, Predictor) else _load(folder, model)
    dimension = predictor.encoder.facts.dimension
    functions = Functions(SqlFunctions(predictor, head, rejecting_odds), dimension)
    added: Mapping[str, tuple[Callable[..., pa.Array], int, str]] = {
        "topic": (functions.topic, 1, "VARCHAR"),
        "topic_score": (functions.topic_score, 2, "DOUBLE"),
        "is_topic": (functions.is_topic, 2, "BOOLEAN"),
        "embedding": (functions.embedding, 1, f"FLOAT[{dimension}]"),
    }
    for name, (function, arguments, kind) in added.items():
        connection.create_function(
            prefix + name,
            function,
            ["VARCHAR"] * arguments,
            kind,
            type=PythonUDFType.ARROW,
            # The functions return null for null themselves, and keep every row.
            null_handling=FunctionNullHandling.SPECIAL,
        )


def _load(folder: Path | str | None, model: str | None) -> Predictor:
    passes = min(usable_cpus(), RANGES["passes"][1])
    settings = load_settings({"COLDFRAME_PASSES": str(passes), **os.environ})
    return load_predictor(chosen(settings, folder, model))
