"""Functions of SQL inside DuckDB, in this process: `topic`, `topic_score`, `is_topic`, `embedding`.

DuckDB hands over up to 2,048 rows at a time, as Arrow columns. Equal texts among them are asked once, and
what one function has computed of a text another takes from the predictor's cache.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from msgspec.structs import replace

from coldframe.columns import Answer, check_heads, embed_column, predict_column
from coldframe.config import load_settings
from coldframe.errors import Invalid
from coldframe.model.files import AUTO
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.sql.rejecting import REJECTING_ODDS, are_topic
from coldframe.vectors import to_floats

_SHOWN_LABELS = 30


class Functions:
    """The functions of one model, over Arrow columns of any number of rows.

    Safe for threads, as `Predictor` is. head: whose answers they give. rejecting_odds: see `are_topic`.
    """

    def __init__(self, predictor: Predictor, head: str, rejecting_odds: float) -> None:
        """Raises Invalid for a head that the model lacks."""
        check_heads(predictor, [head])
        self._predictor, self._head, self._rejecting_odds = predictor, head, rejecting_odds
        self._labels = predictor.manifest.labels
        self._positions = {label: position for position, label in enumerate(self._labels)}

    def topic(self, texts: pa.ChunkedArray) -> pa.Array:
        """The label of each text; null for null, and where the head abstains."""
        answers = self._answers(texts.to_pylist())
        return pa.array([None if answer is None else answer.label for answer in answers], pa.string())

    def topic_score(self, texts: pa.ChunkedArray, labels: pa.ChunkedArray) -> pa.Array:
        """The probability of a label for each text; null where either is null. Raises Invalid."""
        wanted = labels.to_pylist()
        self._check(wanted)
        answers = self._answers(_beside(texts.to_pylist(), wanted))
        scores = [
            None if answer is None else answer.scores[self._positions[label]]
            for answer, label in zip(answers, wanted, strict=True)
        ]
        return pa.array(scores, pa.float64())

    def is_topic(self, texts: pa.ChunkedArray, labels: pa.ChunkedArray) -> pa.Array:
        """Whether the label of each text is this one; null where either is null. Raises Invalid."""
        column, wanted = texts.to_pylist(), labels.to_pylist()
        self._check(wanted)
        found: list[bool | None] = [None] * len(column)
        for label in dict.fromkeys(wanted):  # one, nearly always
            if label is not None:
                rows = [row for row, other in enumerate(wanted) if other == label]
                for row, value in zip(rows, self._are(label, [column[row] for row in rows]), strict=True):
                    found[row] = value
        return pa.array(found, pa.bool_())

    def embedding(self, texts: pa.ChunkedArray) -> pa.Array:
        """The embedding (d,) of each text; null for null."""
        vectors = embed_column(self._predictor, texts.to_pylist())
        dimension = self._predictor.encoder.facts.dimension
        rows = [None if vector is None else to_floats(vector) for vector in vectors]
        return pa.array(rows, pa.list_(pa.float32(), dimension))

    def _answers(self, texts: Sequence[str | None]) -> list[Answer | None]:
        return predict_column(self._predictor, texts, [self._head])[self._head]

    def _are(self, label: str, texts: Sequence[str | None]) -> list[bool | None]:
        if self._head == AUTO:
            return are_topic(self._predictor, texts, label, self._rejecting_odds)
        answers = self._answers(texts)
        return [None if answer is None else answer.label == label for answer in answers]

    def _check(self, labels: Iterable[str | None]) -> None:
        for label in dict.fromkeys(labels):
            if label is not None and label not in self._positions:
                known = ", ".join(self._labels[:_SHOWN_LABELS])
                more = ", …" if len(self._labels) > _SHOWN_LABELS else ""
                raise Invalid(f"Found a label that this model does not have. Its labels: {known}{more}.")


def register(
    connection: duckdb.DuckDBPyConnection,
    model: Predictor | Path | str | None = None,
    head: str | None = None,
    prefix: str = "",
    rejecting_odds: float = REJECTING_ODDS,
) -> None:
    """Adds the functions to a connection; every query of it may use them.

    model: a predictor, or a folder of encoders and models; without one, COLDFRAME_MODEL_DIR.
    head: the model's default unless named.
    prefix: of the functions' names, where several models are registered.
    Raises BadSetting, a BundleError, and Invalid for an unknown head.
    """
    predictor = model if isinstance(model, Predictor) else _load(model)
    functions = Functions(predictor, head or predictor.manifest.default_head, rejecting_odds)
    dimension = predictor.encoder.facts.dimension
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
            # The functions answer null with null themselves, and keep every row.
            null_handling=FunctionNullHandling.SPECIAL,
        )


def _load(folder: Path | str | None) -> Predictor:
    settings = load_settings(os.environ)
    return load_predictor(settings if folder is None else replace(settings, model_dir=Path(folder)))


def _beside(texts: Sequence[str | None], labels: Sequence[str | None]) -> list[str | None]:
    """The texts, without those that have no label beside them: nobody asks about them."""
    return [None if label is None else text for text, label in zip(texts, labels, strict=True)]
