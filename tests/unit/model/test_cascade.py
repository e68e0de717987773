"""When the estimator may answer alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coldframe.model.estimator import Guess, mean_with, temper
from coldframe_training.thresholds.estimator import (
    cascade,
    choose_answer_temperature,
    choose_certainty,
    choose_temperature,
    choose_threshold,
    combine,
    keeps_its_word,
    temper_rows,
)
from coldframe_training.thresholds.estimator_outputs import Guesses

TARGET = np.array([0, 1] * 50)


def guesses(probability: float, right: float = 1.0) -> Guesses:
    """Guesses of one certainty for all rows, of which a share is right."""
    wrong = np.arange(len(TARGET)) >= right * len(TARGET)
    chosen = np.where(wrong, 1 - TARGET, TARGET)
    rows = np.full((len(TARGET), 2), 1 - probability)
    rows[np.arange(len(TARGET)), chosen] = probability
    return Guesses(rows, np.ones(len(TARGET), dtype=bool), np.zeros(len(TARGET)))


def partner() -> NDArray[np.float64]:
    """A head that is always right."""
    always_right: NDArray[np.float64] = np.eye(2)[TARGET]
    return always_right


def test_threshold_has_a_floor() -> None:
    """On rows that the estimator has all right the threshold is not lower than 0.6."""
    assert choose_threshold(guesses(0.99), partner(), TARGET) == 0.6


def test_threshold_above_what_costs_accuracy() -> None:
    """Where the estimator is wrong and the head is right, the estimator does not answer alone."""
    assert choose_threshold(guesses(0.8, right=0.5), partner(), TARGET) >= 0.8


def test_estimator_keeps_its_word() -> None:
    """Right as often as its probability promises, it may answer alone; much less often, it may not."""
    assert keeps_its_word(guesses(0.9, right=0.9), partner(), 0.6, TARGET)
    assert not keeps_its_word(guesses(0.99, right=0.9), partner(), 0.6, TARGET)
    assert keeps_its_word(guesses(0.5), partner(), 0.6, TARGET)


def test_head_has_to_agree() -> None:
    """A head that disagrees more often than the estimator's probability promises keeps it from answering."""
    other = guesses(1.0, right=0.8).probabilities
    assert not keeps_its_word(guesses(0.97), other, 0.6, TARGET)
    assert keeps_its_word(guesses(0.85), other, 0.6, TARGET)
    assert choose_threshold(guesses(0.97), other, TARGET) >= 0.97


def test_temperature_has_a_floor() -> None:
    """An estimator that is always right is not made surer than the floor allows."""
    assert choose_temperature(guesses(0.9), TARGET) == 0.6


def test_temperature_of_an_estimator_that_is_too_sure() -> None:
    """An estimator that says 0.99 and is right on 0.9 is made to say about 0.9."""
    bare = guesses(0.99, right=0.9)
    found = bare.at(choose_temperature(bare, TARGET)).probabilities.max()
    assert 0.88 <= found <= 0.92


def test_estimator_that_promises_too_much_is_made_modest() -> None:
    """Where the likeliest temperature promises too much of the surest rows, a higher one is taken."""
    parts = [*[guesses(0.9, right=0.8)] * 12, *[guesses(0.6, right=0.7)] * 12]
    rows, target = np.concatenate([part.probabilities for part in parts]), np.tile(TARGET, len(parts))
    bare = Guesses(rows, np.ones(len(target), dtype=bool), np.zeros(len(target)))
    agreeing: NDArray[np.float64] = np.eye(2)[rows.argmax(axis=1)]
    likely = choose_temperature(bare, target)
    assert not bare.at(likely).sure(choose_threshold(bare.at(likely), agreeing, target)).any()
    found = choose_certainty(bare, agreeing, target)
    modest = bare.at(found.temperature)
    assert found.temperature > likely
    assert modest.sure(found.threshold).any()
    assert keeps_its_word(modest, agreeing, found.threshold, target)


def test_too_few_known_tokens() -> None:
    """A guess from too few known tokens is averaged with the head's, however sure it is."""
    sure = guesses(0.99)
    unknown = sure._replace(known=np.zeros(len(TARGET), dtype=bool))
    assert np.array_equal(cascade(sure, partner(), 0.6), sure.probabilities)
    assert np.array_equal(cascade(unknown, partner(), 0.6), combine(sure, partner()))


rows_of_numbers = st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=20)


@given(rows_of_numbers, rows_of_numbers)
def test_training_combines_as_serving(guesses: list[list[float]], partners: list[list[float]]) -> None:
    """Guess and partner are combined as they are at serving, to the bit."""
    count = min(len(guesses), len(partners))
    own = np.array(guesses[:count])
    other = np.array(partners[:count], dtype=np.float32)
    together = combine(Guesses(own, np.ones(count, dtype=bool), np.zeros(count)), other)
    served = [
        mean_with(Guess(row, False, 0.0), rows.tolist()) for row, rows in zip(guesses, other, strict=False)
    ]
    assert together.tolist() == served


@given(rows_of_numbers)
def test_training_tempers_as_serving(rows: list[list[float]]) -> None:
    """Answers have the temperature of who gives them, as at serving, to the bit."""
    answers = np.array(rows) + 0.001
    alone = np.arange(len(rows)) % 2 == 0
    tempered = temper_rows(answers, alone, (0.4, 1.3))
    served = [temper(row, 0.4 if own else 1.3) for row, own in zip(answers.tolist(), alone, strict=True)]
    assert tempered.tolist() == served


def test_answers_that_are_too_modest() -> None:
    """Answers that are right more often than they say get a temperature under 1; a few say nothing."""
    answers = np.tile([0.5, 0.3, 0.2], (100, 1))
    target = np.where(np.arange(100) < 90, 0, 1)
    chosen = choose_answer_temperature(answers, target)
    assert temper([0.5, 0.3, 0.2], chosen)[0] == pytest.approx(0.9, abs=0.05)
    assert choose_answer_temperature(answers[:19], target[:19]) == 1.0


def test_no_threshold_above_every_guess() -> None:
    """A threshold that no guess reaches is none: the estimator never answers alone."""
    assert choose_threshold(guesses(0.7, right=0.5), partner(), TARGET) == 1.0
