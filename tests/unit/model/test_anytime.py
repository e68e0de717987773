"""When `auto` may stop reading a long text."""

from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coldframe.timing import NO_DEADLINE
from coldframe.vectors import Vector
from coldframe_training.embeddings.embedding_store import EmbeddedWindows
from coldframe_training.embeddings.matrices import predict_rows, to_matrix
from coldframe_training.thresholds.estimator_outputs import Guesses
from coldframe_training.thresholds.long_texts import (
    MARGINS,
    READ_ALL,
    Steps,
    choose_margin,
    steps_of,
    windows_read,
)
from tests.conftest import TinyHead, tiny_predictor

ROWS = 40
TARGET = np.arange(ROWS) % 2
THRESHOLD = 0.9


def say(probability: float, label: NDArray[np.int64]) -> NDArray[np.float64]:
    """Two probabilities for each row: that of its label, and the rest."""
    rows = np.full((len(label), 2), 1 - probability)
    rows[np.arange(len(label)), label] = probability
    return rows


def unsure(rows: int = ROWS) -> Guesses:
    """An estimator that says the same of both labels."""
    return Guesses(np.full((rows, 2), 0.5), np.ones(rows, dtype=bool), np.zeros(rows))


def two_windows(first: NDArray[np.floating], both: NDArray[np.floating]) -> Steps:
    return Steps([first, both], np.full(len(first), 2))


def test_stops_where_the_label_stays() -> None:
    """Where the first window says what both say, reading stops after it, and no accuracy is lost."""
    steps = two_windows(say(0.8, TARGET), say(0.9, TARGET))
    margin = choose_margin(unsure(), steps, THRESHOLD, TARGET)
    assert margin == MARGINS[0]
    assert windows_read(unsure(), steps, margin).tolist() == [1] * ROWS


def test_reads_on_where_the_label_changes() -> None:
    """Where the second window changes labels, the margin is above what the first one reaches."""
    first = say(0.65, TARGET)  # with the guess: a margin of 0.15
    first[:4] = first[:4, ::-1]
    steps = two_windows(first, say(0.9, TARGET))
    margin = choose_margin(unsure(), steps, THRESHOLD, TARGET)
    assert windows_read(unsure(), steps, margin).tolist() == [2] * ROWS


def test_few_long_texts_say_nothing() -> None:
    """With too few long texts that the estimator is unsure of, everything is read."""
    steps = two_windows(say(0.8, TARGET), say(0.9, TARGET))
    few = Steps(steps.after, np.where(np.arange(ROWS) < 10, 2, 1))
    assert choose_margin(unsure(), few, THRESHOLD, TARGET) == READ_ALL
    sure = Guesses(say(0.99, TARGET), np.ones(ROWS, dtype=bool), np.zeros(ROWS))
    assert choose_margin(sure, steps, THRESHOLD, TARGET) == READ_ALL


@given(
    st.lists(st.tuples(st.integers(1, 4), *[st.floats(0, 1)] * 4), min_size=1, max_size=9), st.floats(0, 1)
)
def test_the_first_stop_counts(
    documents: list[tuple[int, float, float, float, float]], margin: float
) -> None:
    """A document is read to the first window after which it is settled, or to its end."""
    windows = np.array([count for count, *_ in documents])
    first = [np.array([values[window] for _, *values in documents]) for window in range(4)]
    steps = Steps([np.stack([one, 1 - one], axis=1) for one in first], windows)
    guessed = unsure(len(documents))
    read = windows_read(guessed, steps, margin)
    assert (read <= windows).all()
    for row, count in enumerate(read):
        alone = [windows_read(guessed, two_windows(part, part), margin)[row] == 1 for part in steps.after]
        assert not any(alone[: count - 1])
        assert count == windows[row] or alone[count - 1]
    assert (windows_read(guessed, steps, READ_ALL) == windows).all()


@given(st.lists(st.text("abc", max_size=15), min_size=1, max_size=6))
def test_training_reads_as_serving(texts: list[str]) -> None:
    """After every window, what training sees is what serving would, to the bit."""
    encoder = tiny_predictor().model.encoder

    def encode(text: list[list[int]]) -> list[Vector]:
        found = encoder.embed([[window] for window in text], NO_DEADLINE).vectors
        return [vector for vector in found if vector is not None]

    cut = [[text[start : start + 4] for start in range(0, max(1, len(text)), 4)] for text in texts]
    windows = [[[1, *map(ord, part), 2] for part in parts] for parts in cut]
    vectors = [encode(text) for text in windows]
    embedded = [
        EmbeddedWindows(np.array([len(window) for window in text], dtype=np.int32), to_matrix(found))
        for text, found in zip(windows, vectors, strict=True)
    ]
    steps = steps_of(partial(predict_rows, TinyHead()), embedded)
    for row, (text, found) in enumerate(zip(windows, vectors, strict=True)):
        for read in range(1, len(text) + 1):
            (mean,) = encoder.pool([text[:read]], [found[:read]])
            (expected,) = TinyHead().predict([mean])
            assert steps.after[read - 1][row].tobytes() == expected
