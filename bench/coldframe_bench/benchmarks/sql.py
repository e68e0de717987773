"""Functions in DuckDB: a plain one, row by row, `topic`, and `is_topic` that rejects rows early."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from coldframe.columns import predict_column
from coldframe.config import Settings
from coldframe.cpus import usable_cpus
from coldframe.duckdb import register
from coldframe.model.files import AUTO
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.progress import Progress
from coldframe_bench.data.newsgroups import is_available, read_newsgroups
from coldframe_bench.data.texts import NEWSGROUPS, TextMix, load_texts
from coldframe_bench.records.tables import Row, table
from coldframe_local.paths import default_model

_ODDS = 30.0
"""Odds of `is_topic` that are measured: the docs print what they lose."""

_TOPIC = "SELECT id FROM posts WHERE topic(body) = $label"
_IS_TOPIC = "SELECT id FROM posts WHERE is_topic(body, $label)"

Rows = list[tuple[int]]


def run(model_dir: Path, rows: int, labels: int, seed: int) -> bool:
    """Prints one table; whether `topic` found the rows of the plain function. labels: how many are asked for.

    `is_topic` rejects rows by odds here, which may lose some: the table says how many.
    """
    mix = TextMix(NEWSGROUPS, read_newsgroups().posts[:rows]) if is_available() else load_texts(rows, seed)
    passes = usable_cpus()
    known = _load(model_dir, passes).manifest.labels
    lines: list[Row] = []
    same, totals_s = True, [0.0] * 4
    for label in Progress(known[:: max(1, len(known) // labels)][:labels], unit="label"):
        plain_s, plain = _measure(_plain, _load(model_dir, passes), mix.texts, _TOPIC, label)
        topic_s, topic = _measure(register, _load(model_dir, passes), mix.texts, _TOPIC, label)
        alone_s, alone = _measure(_register_rejecting, _load(model_dir, 1), mix.texts, _IS_TOPIC, label)
        is_s, rest = _measure(_register_rejecting, _load(model_dir, passes), mix.texts, _IS_TOPIC, label)
        agree = plain == topic and alone == rest
        same = same and agree
        times_s = (plain_s, topic_s, alone_s, is_s)
        totals_s = [total + spent for total, spent in zip(totals_s, times_s, strict=True)]
        cells = (*(f"{spent:.1f}" for spent in times_s), *(f"{plain_s / own:.2f}" for own in times_s[1:]))
        lost = len(set(plain) ^ set(rest))
        lines.append((label, str(len(plain)), *cells, str(lost), "yes" if agree else "NO"))
    head = "label | rows | plain, s | `topic`, s | `is_topic`, one pass at once, s | `is_topic`, s"
    head += " | plain / `topic` | plain / `is_topic`, one pass at once | plain / `is_topic` | lost | same"
    print(table(head, lines))
    topic_x, alone_x, is_x = (totals_s[0] / total for total in totals_s[1:])
    print(
        f"{mix.source}: {len(mix.texts)} rows, {passes} processors, a fresh cache for each measurement;"
        f" `is_topic` with rejecting_odds={_ODDS:g}. For all these labels together, `topic` is"
        f" {topic_x:.2f} times as quick as the plain function, `is_topic`"
        f" {is_x:.2f} times, and {alone_x:.2f} times with one pass."
    )
    return same


def _load(model_dir: Path, passes: int) -> Predictor:
    """A predictor that has seen nothing."""
    return load_predictor(Settings(model_dir=model_dir, models=default_model(), passes=passes))


def _plain(connection: duckdb.DuckDBPyConnection, predictor: Predictor) -> None:
    """The function that anyone would write: one row at a time, the same head of the same model."""

    def topic(text: str) -> str | None:
        (answer,) = predict_column(predictor, [text], [AUTO], use_cache=False)[AUTO]
        return None if answer is None else answer.label

    connection.create_function("topic", topic, ["VARCHAR"], "VARCHAR")


def _register_rejecting(connection: duckdb.DuckDBPyConnection, predictor: Predictor) -> None:
    register(connection, predictor, rejecting_odds=_ODDS)


def _measure(
    add: Callable[[duckdb.DuckDBPyConnection, Predictor], None],
    predictor: Predictor,
    texts: Sequence[str],
    query: str,
    label: str,
) -> tuple[float, Rows]:
    """Seconds of a query with functions of this predictor, and the rows that it finds."""
    with duckdb.connect() as connection:
        add(connection, predictor)
        connection.register("posts", pa.table({"id": range(len(texts)), "body": texts}))
        started_s = time.perf_counter()
        rows = connection.execute(query, {"label": label}).fetchall()
        return time.perf_counter() - started_s, sorted(rows)
