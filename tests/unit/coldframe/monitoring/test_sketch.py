"""Sketches add up in any order, stay small, and count once."""

import ast
import json
import random
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from coldframe.monitoring import recorder as recorder_module
from coldframe.monitoring import sketch as sketch_module
from coldframe.monitoring.recorder import Answer, Projections, Recorder
from coldframe.monitoring.sketch import (
    PROJECTIONS,
    Counts,
    Sketch,
    distinct,
    empty_counts,
    fragment_bin,
    label_bin,
    length_bin,
    unknown_bin,
)
from coldframe.vectors import Vector, to_vector

SHARES = st.floats(0, 1)


@st.composite
def answers(draw: st.DrawFn, labels: int = 5) -> Answer:
    tokens = draw(st.integers(0, 9000))
    return Answer(
        label=draw(st.integers(0, labels - 1)),
        probability=draw(SHARES),
        tokens=tokens,
        unknown=draw(st.integers(0, tokens)),
        out_of_distribution=draw(SHARES),
        embedding=draw(st.none() | st.integers(0, 99).map(embedding)),
        fragments=draw(st.integers(0, tokens)),
    )


def embedding(seed: int, dimension: int = 384) -> Vector:
    """A random vector of length 1."""
    dice = random.Random(seed)
    values = [dice.gauss(0, 1) for _ in range(dimension)]
    length = sum(value * value for value in values) ** 0.5
    return to_vector(value / length for value in values)


PROJECTOR = Projections("sha256:encoder", 384)


def recorder(labels: int = 5, environment: str = "e") -> Recorder:
    return Recorder("sha256:model", "auto", labels, PROJECTOR, environment, start_s=0.0)


def sketch_of(rows: list[Answer], labels: int = 5) -> Counts:
    """Counts over answers; none for no answers."""
    records = recorder(labels)
    for answer in rows:
        records.add(answer)
    handed = records.hand_over(60.0)
    return empty_counts(labels) if handed is None else handed.counts


@given(st.lists(st.lists(answers(), max_size=4), min_size=1, max_size=5), st.randoms())
def test_sums_do_not_depend_on_order_or_parts(parts: list[list[Answer]], dice: random.Random) -> None:
    """Counts of all answers equal the sum of the counts of parts, in any order."""
    whole = sketch_of([answer for part in parts for answer in part])
    dice.shuffle(parts)
    assert reduce(add, map(sketch_of, parts)) == whole
    assert reduce(lambda one, other: other + one, map(sketch_of, parts)) == whole


@given(st.lists(answers(), max_size=20))
def test_each_histogram_counts_each_answer_once(rows: list[Answer]) -> None:
    """Histograms have the number of texts as their sum; projections count embedded texts alone."""
    counts = sketch_of(rows)
    for name in ("confidence", "length", "unknown", "out_of_distribution", "labels", "fragments"):
        assert sum(asdict(counts)[name]) == len(rows) == counts.texts
    assert counts.embedded == [sum(answer.embedding is not None for answer in rows)]


@pytest.mark.parametrize("labels", [2, 20, 48, 49, 1000])
def test_a_sketch_has_less_than_4_kb(labels: int) -> None:
    """A sketch of a million answers fits into 4 KB of JSON, however many labels the model has."""
    counts = sketch_of([Answer(label, 0.7, 90, 3, 0.5, embedding(0)) for label in range(labels)], labels)
    many = Counts(**{name: [1_000_000 * max(sums)] * len(sums) for name, sums in asdict(counts).items()})
    sketch = Sketch("sha256:" + "f" * 64, "logreg", "e" * 36, 10**6, 1.8e9, 1.8e9 + 60, many)
    assert len(json.dumps(sketch.as_json(), separators=(",", ":"))) < 4096


@given(st.lists(answers(), min_size=1, max_size=3))
def test_json_has_the_whole_sketch(rows: list[Answer]) -> None:
    """A sketch is read from its JSON as it was handed over."""
    records = recorder()
    for answer in rows:
        records.add(answer)
    sketch = records.hand_over(61.5)
    assert sketch is not None
    assert msgspec.json.decode(json.dumps(sketch.as_json()), type=Sketch) == sketch


def test_a_sketch_is_handed_over_once_a_minute() -> None:
    """Nothing is handed over within a minute or without answers; a clock that jumps back delays nothing."""
    records, answer = recorder(), Answer(0, 0.9, 10, 0, 0.5)
    assert records.hand_over(100.0) is None
    records.add(answer)
    assert records.hand_over(59.0) is None
    first = records.hand_over(60.0)
    assert records.hand_over(200.0) is None
    records.add(answer)
    second = records.hand_over(30.0)
    assert first is not None
    assert second is not None
    assert (first.sequence, first.start_s, first.end_s, first.counts.texts) == (1, 0.0, 60.0, 1)
    assert (second.sequence, second.start_s, second.counts.texts) == (2, 60.0, 1)


def test_threads_lose_no_answer() -> None:
    """Answers of many threads all count, each in one sketch."""
    records, answer = recorder(), Answer(1, 0.5, 10, 1, 0.5)

    def work(_: int) -> int:
        for _ in range(200):
            records.add(answer)
        handed = records.hand_over(0.0, interval_s=0.0)
        return handed.counts.texts if handed else 0

    with ThreadPoolExecutor(8) as pool:
        total = sum(pool.map(work, range(16)))
    rest = records.hand_over(0.0, interval_s=0.0)
    assert total + (rest.counts.texts if rest else 0) == 3200


def test_a_repeated_sketch_counts_once() -> None:
    """Sketches that come twice or out of order are each there once, in the order of their ends."""
    counts = sketch_of([Answer(0, 0.9, 10, 0, 0.5)])
    sketches = [Sketch("m", "auto", name, 1, 0.0, end_s, counts) for name, end_s in (("b", 9.0), ("a", 5.0))]
    assert distinct([*sketches, *sketches[::-1]]) == sketches[::-1]


def test_projections_depend_on_the_encoder_alone() -> None:
    """Environments project alike, another encoder differently; on average, lengths stay."""
    vectors = [embedding(seed) for seed in range(300)]
    rows = [PROJECTOR.project(vector) for vector in vectors]
    assert [Projections("sha256:encoder", 384).project(vector) for vector in vectors] == rows
    assert Projections("sha256:other", 384).project(vectors[0]) != rows[0]
    squares = [sum(value * value for value in row) for row in rows]
    assert len(rows[0]) == PROJECTIONS
    assert sum(squares) / len(squares) == pytest.approx(1, abs=0.06)


def test_bins_cover_every_text() -> None:
    """Lengths, shares of tokens and labels have bins from first to last."""
    assert [length_bin(tokens) for tokens in (0, 1, 2, 4094, 10**6)] == [0, 2, 3, 23, 23]
    assert [unknown_bin(*pair) for pair in ((0, 0), (0, 9), (1, 100), (1, 10), (9, 9))] == [0, 0, 1, 1, 10]
    assert [fragment_bin(*pair) for pair in ((0, 0), (0, 9), (1, 100), (1, 20), (1, 2), (9, 9))] == [
        *(0, 0, 1, 1, 10, 10)
    ]
    assert {label_bin(label, 1000) for label in range(1000)} == set(range(48))


@pytest.mark.parametrize("module", [sketch_module, recorder_module])
def test_environments_import_nothing_new(module: object) -> None:
    """Sketch and recorder import nothing that an environment would not have imported anyway."""
    path = Path(getattr(module, "__file__", ""))
    names = {
        node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
    }
    own = {"coldframe.digests", "coldframe.vectors", "coldframe.monitoring.sketch"}
    roots = {name.partition(".")[0] for name in names - own if name}
    assert roots <= {"msgspec", "operator", "collections", "threading", "typing"}
