"""The functions in a real DuckDB: order, rows, nulls, labels, errors, and threads."""

import math
import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from coldframe.columns import predict_column
from coldframe.config import Settings
from coldframe.duckdb import register
from coldframe.errors import Invalid
from coldframe.model.bundle import load_manifest
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.vectors import to_floats
from coldframe_bench.data.texts import sentences
from tests.conftest import EXAMPLE, TinyEncoder, tiny_predictor
from tests.support.example import HOCKEY, SPACE

FUZZED = 100_000


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database in memory, of several threads."""
    with duckdb.connect(config={"threads": 4}) as opened:
        yield opened


@pytest.fixture
def real(connection: duckdb.DuckDBPyConnection, predictor: Predictor) -> duckdb.DuckDBPyConnection:
    """A database with the functions of the example."""
    register(connection, predictor)
    return connection


def test_functions(real: duckdb.DuckDBPyConnection, predictor: Predictor) -> None:
    """Each function gives what `Predictor` gives, to the bit, and null for null."""
    texts = [*sentences()[:40], None, "", "Ωμέγα 🚀\x00 nul", None]
    real.register("posts", pa.table({"id": range(len(texts)), "body": texts}))
    rows = real.execute(
        "SELECT topic(body), topic_score(body, $label), is_topic(body, $label), embedding(body)"
        " FROM posts ORDER BY id",
        {"label": SPACE},
    ).fetchall()
    answers = predict_column(predictor, texts, ["auto"])["auto"]
    position = load_manifest(Path("models"), EXAMPLE).labels.index(SPACE)
    for row, text, answer in zip(rows, texts, answers, strict=True):
        if text is None or answer is None:
            assert row == (None, None, None, None)
            continue
        vector = tuple(to_floats(predictor.embed([text]).vectors[0]))
        assert row == (answer.label, answer.scores[position], answer.label == SPACE, vector)


def fuzzed_rows(seed: int) -> list[tuple[int, str | None, str | None]]:
    """Rows of odd texts, many of them repeated, null or empty, and labels that change."""
    source = random.Random(seed)
    alphabet = "ab 1\t\n\x00\x0bé中🚀\u200d\u0301'\"%"
    pool = ["".join(source.choices(alphabet, k=source.randrange(12))) for _ in range(3000)]
    labels = ["animals", "music", "weather"]
    return [
        (
            row,
            None if source.random() < 0.1 else source.choice(pool),
            None if source.random() < 0.02 else source.choice(labels),
        )
        for row in range(FUZZED)
    ]


def test_order_and_row_count_over_fuzzed_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """100,000 odd rows over several threads: each row has its own answer, none is lost and none is added."""
    rows = fuzzed_rows(seed=15)
    register(connection, tiny_predictor(), head="auto", rejecting_odds=math.inf)
    ids, texts, labels = zip(*rows, strict=True)
    connection.register("made", pa.table({"id": ids, "body": texts, "label": labels}))
    connection.execute("CREATE TABLE posts AS FROM made")
    found = connection.sql(
        "SELECT id, topic(body), topic_score(body, label), is_topic(body, label) FROM posts"
    ).fetchall()
    assert len(found) == FUZZED
    assert sorted(row[0] for row in found) == list(range(FUZZED))
    answers = predict_column(tiny_predictor(cache_bytes=0), texts, ["auto"])["auto"]
    positions = {"animals": 0, "music": 1, "weather": 2}
    for row, topic, score, is_topic in found:
        answer, label = answers[row], labels[row]
        assert topic == (None if answer is None else answer.label)
        expected = None if answer is None or label is None else answer.scores[positions[label]]
        assert score == expected
        assert is_topic == (None if answer is None or label is None else answer.label == label)


def test_filters_and_groups(connection: duckdb.DuckDBPyConnection) -> None:
    """Functions work where SQL allows them: filters, groups, joins, no rows at all."""
    register(connection, tiny_predictor(), head="auto")
    connection.execute("CREATE TABLE posts AS SELECT 'text ' || (i % 50) AS body FROM range(5000) t(i)")
    groups = dict(connection.sql("SELECT topic(body), count(*) FROM posts GROUP BY 1").fetchall())
    assert sum(groups.values()) == 5000
    for label, count in groups.items():
        plain = connection.execute("SELECT count(*) FROM posts WHERE topic(body) = ?", [label]).fetchall()
        asked = connection.execute("SELECT count(*) FROM posts WHERE is_topic(body, ?)", [label]).fetchall()
        assert plain == asked == [(count,)]
    assert connection.sql("SELECT topic(body) FROM posts WHERE body IS NULL").fetchall() == []
    assert connection.sql("SELECT topic(NULL)").fetchall() == [(None,)]


def test_one_pass(connection: duckdb.DuckDBPyConnection) -> None:
    """`topic` and `topic_score` of one column encode each distinct text once, in all chunks of a query."""
    encoder = TinyEncoder()
    register(connection, tiny_predictor(encoder), head="auto")
    connection.execute("SET threads = 1")
    connection.sql(
        "SELECT topic(body), topic_score(body, 'music'), topic_score(body, 'animals')"
        " FROM (SELECT 'text ' || (i % 777) AS body FROM range(9000) t(i))"
    ).fetchall()
    assert len(encoder.tokenized) == len(set(encoder.tokenized)) == 777


def test_unknown_label(connection: duckdb.DuckDBPyConnection) -> None:
    """A label that the model lacks is an error with the list of those it has, not a silent nothing."""
    register(connection, tiny_predictor(), head="auto")
    for function in ("topic_score", "is_topic"):
        with pytest.raises(duckdb.InvalidInputException) as caught:
            connection.sql(f"SELECT {function}('a private letter', 'sports')").fetchall()
        assert "Use one of: animals, music, weather." in str(caught.value)
        assert "private" not in str(caught.value)


def test_registered_twice(connection: duckdb.DuckDBPyConnection) -> None:
    """Another head, or another model, stands beside the first by a prefix."""
    register(connection, tiny_predictor(), head="auto")
    register(connection, tiny_predictor(), head="first", prefix="first_")
    answers = predict_column(tiny_predictor(), ["abc"], ["auto", "first"])
    row = connection.sql(
        "SELECT topic('abc'), first_topic('abc'), first_is_topic('abc', 'music')"
    ).fetchall()[0]
    labels = [answers[head][0].label for head in ("auto", "first")]  # type: ignore[union-attr]
    assert list(row) == [*labels, labels[1] == "music"]
    with pytest.raises(Invalid, match="is not a head of this model"):
        register(connection, tiny_predictor(), head="no-such-head", prefix="other_")


def test_from_a_folder(connection: duckdb.DuckDBPyConnection, bundle: Path) -> None:
    """A folder of models is enough to register."""
    register(connection, bundle)
    text = "The goalie saved every shot in the hockey game"
    assert connection.execute("SELECT topic(?)", [text]).fetchall() == [(HOCKEY,)]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [({}, 3), ({"COLDFRAME_PASSES": "2"}, 2)],
    ids=["one pass per processor", "as the setting says"],
)
def test_processors(
    connection: duckdb.DuckDBPyConnection,
    bundle: Path,
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    expected: int,
) -> None:
    """Functions of a folder run a pass on every processor, unless COLDFRAME_PASSES says otherwise."""
    seen: list[Settings] = []

    def load(settings: Settings) -> Predictor:
        seen.append(settings)
        return load_predictor(settings)

    monkeypatch.delenv("COLDFRAME_PASSES", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("coldframe.duckdb.usable_cpus", lambda: 3)
    monkeypatch.setattr("coldframe.duckdb.load_predictor", load)
    register(connection, bundle)
    assert [settings.passes for settings in seen] == [expected]


def test_several_passes_answer_as_one(bundle: Path) -> None:
    """The real model, with one pass at a time and with four: all values are equal to the bit."""
    posts = pa.table({"body": [*sentences()[:200], " ".join(sentences()[:60])]})
    answers = []
    for passes in (1, 4):
        with duckdb.connect() as connection:
            register(connection, load_predictor(Settings(model_dir=bundle, passes=passes)))
            connection.register("posts", posts)
            found = connection.execute(
                "SELECT topic(body), topic_score(body, $label), is_topic(body, $label), embedding(body)"
                " FROM posts",
                {"label": SPACE},
            )
            answers.append(found.fetchall())
    assert answers[0] == answers[1]
