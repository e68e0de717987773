"""Functions in DuckDB: a plain one, row by row, beside `topic` and `is_topic`, on the same rows."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
from tqdm import tqdm

from bench.data.newsgroups import is_available, read_newsgroups
from bench.data.texts import NEWSGROUPS, load_texts
from coldframe.columns import predict_column
from coldframe.config import Settings
from coldframe.duckdb import register
from coldframe.model.files import AUTO
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from local.paths import default_model

_TOPIC = "SELECT id FROM posts WHERE topic(body) = $label"
_IS_TOPIC = "SELECT id FROM posts WHERE is_topic(body, $label)"

Rows = list[tuple[int]]


def run(model_dir: Path, rows: int, labels: int, seed: int) -> bool:
    """Prints one table; whether all three ways found the same rows. labels: how many are asked for."""
    if is_available():
        source, texts = NEWSGROUPS, read_newsgroups().posts[:rows]
    else:
        mix = load_texts(rows, seed)
        source, texts = mix.source, mix.texts
    known = _load(model_dir).manifest.labels
    asked = known[:: max(1, len(known) // labels)][:labels]
    print(
        "| label | rows | plain, s | `topic`, s | `is_topic`, s | plain / `is_topic` | `topic` / `is_topic` |"
        " same |"
    )
    print("|---|---|---|---|---|---|---|---|")
    same = True
    for label in tqdm(asked, unit="label", disable=None):
        plain_s, plain = _measure(_plain, model_dir, texts, _TOPIC, label)
        topic_s, topic = _measure(register, model_dir, texts, _TOPIC, label)
        is_s, found = _measure(register, model_dir, texts, _IS_TOPIC, label)
        agree = plain == topic == found
        same = same and agree
        print(
            f"| {label} | {len(found)} | {plain_s:.1f} | {topic_s:.1f} | {is_s:.1f}"
            f" | **{plain_s / is_s:.2f}** | {topic_s / is_s:.2f} | {'yes' if agree else 'NO'} |"
        )
    print(f"\n{source}: {len(texts)} rows, one thread, a fresh cache for each measurement.")
    return same


def _load(model_dir: Path) -> Predictor:
    return load_predictor(Settings(model_dir=model_dir, models=default_model()))


def _plain(connection: duckdb.DuckDBPyConnection, predictor: Predictor) -> None:
    """The function that anyone would write: one row at a time, the same head of the same model."""

    def topic(text: str) -> str | None:
        (answer,) = predict_column(predictor, [text], [AUTO], use_cache=False)[AUTO]
        return None if answer is None else answer.label

    connection.create_function("topic", topic, ["VARCHAR"], "VARCHAR")


def _measure(
    add: Callable[[duckdb.DuckDBPyConnection, Predictor], None],
    model_dir: Path,
    texts: Sequence[str],
    query: str,
    label: str,
) -> tuple[float, Rows]:
    """Seconds of a query with functions that have seen nothing, and the rows that it finds."""
    predictor = _load(model_dir)
    predictor.model.get()
    with duckdb.connect(config={"threads": 1}) as connection:
        add(connection, predictor)
        connection.register("posts", pa.table({"id": range(len(texts)), "body": texts}))
        started_s = time.perf_counter()
        found = connection.execute(query, {"label": label}).fetchall()
        return time.perf_counter() - started_s, sorted(found)
