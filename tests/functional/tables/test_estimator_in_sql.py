"""The estimator as plain SQL: the tokens, probabilities and decisions of `Estimator`, for ASCII texts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.config import Settings
from coldframe.errors import Invalid
from coldframe.model.estimator import temper
from coldframe.model.wordpiece import is_plain
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.sql.estimator_tables import create_estimator
from coldframe_bench.data.texts import sentences
from tests.conftest import SECOND
from tests.support.example import SPACE


@pytest.fixture(scope="module")
def connection(bundle: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the estimator of the example."""
    with duckdb.connect() as opened:
        create_estimator(opened, bundle)
        yield opened


def estimate(connection: duckdb.DuckDBPyConnection, texts: list[str | None]) -> list[Any]:
    rows = pa.table({"id": pa.array(range(len(texts)), pa.int64()), "text": pa.array(texts, pa.string())})
    connection.register("texts", rows)
    return connection.execute("FROM estimate('texts')").fetchall()


def check(connection: duckdb.DuckDBPyConnection, predictor: Predictor, texts: list[str]) -> None:
    labels = predictor.manifest.labels
    found = estimate(connection, [*texts])
    assert [row[0] for row in found] == list(range(len(texts)))
    for (_, topic, probability, sure), guess in zip(found, predictor.guess(texts), strict=True):
        answer = temper(guess.probabilities, guess.temperatures[0])
        assert probability == pytest.approx(max(answer), abs=1e-12)
        assert answer[labels.index(topic)] == pytest.approx(probability, abs=1e-12)
        assert sure == guess.sure


def test_sentences(connection: duckdb.DuckDBPyConnection, predictor: Predictor) -> None:
    """Sentences, alone and together, and a text longer than the windows that are read."""
    ascii_only = [text for text in sentences() if text.isascii()][:60]
    check(
        connection,
        predictor,
        [*ascii_only, " ".join(ascii_only), " ".join(ascii_only * 10), "x" * 101, "", "!!"],
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(max_codepoint=127), max_size=60), min_size=1, max_size=8))
def test_any_ascii(connection: duckdb.DuckDBPyConnection, predictor: Predictor, texts: list[str]) -> None:
    """Control characters, quotes, digits in words: the same tokens, so the same answers."""
    check(connection, predictor, [text for text in texts if is_plain(text)])


def test_temperature_of_answers(two_models: Path) -> None:
    """A model whose answers have a temperature gives the same probabilities, and is as often sure."""
    predictor = load_predictor(Settings(model_dir=two_models, models=SECOND))
    assert predictor.manifest.estimator.answer_temperatures == (0.7, 0.8)
    with duckdb.connect() as opened:
        create_estimator(opened, two_models, SECOND)
        check(opened, predictor, [text for text in sentences() if text.isascii()][:40])


def test_refused(connection: duckdb.DuckDBPyConnection, bundle: Path) -> None:
    """A prefix that would end a name is refused."""
    with pytest.raises(Invalid, match="is not part of a name"):
        create_estimator(connection, bundle, prefix='x"')


def test_others_are_left(connection: duckdb.DuckDBPyConnection) -> None:
    """A text that is null, not ASCII, or has a token spelled out has no answer, and no row is lost."""
    others = [None, "café in Paris", "[SEP]", "a [MASK] in the text"]
    found = estimate(connection, [*others, "NASA launched the [shuttle] into orbit"])
    assert [row[1:] for row in found[:4]] == [(None, None, None)] * 4
    assert found[4][1] == SPACE
