"""Accuracy is estimated without labels, and bounded with a few."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from coldframe.monitoring.accuracy import (
    LabelledAnswer,
    bound_risk,
    estimate_accuracy,
    most_gain,
    rake,
    stakes,
)
from coldframe.monitoring.recorder import Answer
from coldframe.monitoring.reference import AnswerRows, Reference, make_reference
from coldframe.monitoring.sketch import Counts, empty_counts

LABELS = ["a", "b", "c"]


def answers(dice: random.Random, number: int, hard: float, trust: float = 1.0) -> list[tuple[Answer, bool]]:
    """Answers and whether each is right. hard: share of long texts, which are hard.

    trust: share of its probability that an answer keeps in truth.
    """
    rows = []
    for _ in range(number):
        is_hard = dice.random() < hard
        probability = dice.uniform(0.3, 0.7) if is_hard else dice.uniform(0.7, 1.0)
        answer = Answer(dice.randrange(3), probability, 400 if is_hard else 20, 0, dice.random())
        rows.append((answer, dice.random() < probability * (trust if is_hard else 1.0)))
    return rows


def reference_of(rows: list[tuple[Answer, bool]]) -> Reference:
    truth = ((answer, (answer.label + (not is_right)) % 3) for answer, is_right in rows)
    return make_reference("auto", LABELS, "sha256:encoder", 384, truth)


@pytest.mark.parametrize("hard", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("trust", [1.0, 0.7])
def test_estimates_follow_a_shift(hard: float, trust: float) -> None:
    """The corrected estimate is right within three points, also where probabilities promise too much."""
    dice = random.Random(7)
    reference = reference_of(answers(dice, 4000, 0.5, trust))
    rows = answers(dice, 4000, hard, trust)
    counts, true = reference_of(rows).counts, sum(right for _, right in rows) / len(rows)
    estimate = estimate_accuracy(counts, reference)
    assert estimate is not None
    assert estimate.best == pytest.approx(true, abs=0.03)
    if trust == 1:
        assert estimate.cbpe == pytest.approx(true, abs=0.03)
    elif hard:
        assert abs(estimate.cbpe - true) > abs(estimate.best - true)


def test_no_answers_have_no_estimate() -> None:
    """Without answers there is no accuracy; without a reference there is the mean probability alone."""
    assert estimate_accuracy(empty_counts(3), None) is None
    estimate = estimate_accuracy(reference_of(answers(random.Random(1), 10, 0.5)).counts, None)
    assert estimate is not None
    assert estimate.m_cbpe is None
    assert estimate.best == estimate.cbpe
    assert estimate.margin > 0.1


def test_a_reference_without_rows_leaves_the_mean() -> None:
    """A reference without rows corrects nothing."""
    counts = reference_of(answers(random.Random(1), 10, 0.5)).counts
    empty = Reference("m", "auto", LABELS, empty_counts(3), AnswerRows(*([] for _ in range(8))))
    estimate = estimate_accuracy(counts, empty)
    assert estimate is not None
    assert estimate.m_cbpe is None


@given(st.integers(1, 40), st.integers(1, 400), st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
def test_weights_are_shares(rows: int, texts: int, hard: float, others: float, seed: int) -> None:
    """Weights are a distribution over the reference's rows, whatever comes."""
    dice = random.Random(seed)
    reference = reference_of(answers(dice, rows, hard))
    weights = rake(reference_of(answers(dice, texts, others)).counts, reference)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()


def test_equal_mixtures_have_nearly_equal_weights() -> None:
    """Texts like the reference leave each of its rows about its weight."""
    dice = random.Random(2)
    reference = reference_of(answers(dice, 2000, 0.5))
    weights = rake(reference.counts, reference)
    np.testing.assert_allclose(weights * 2000, 1, atol=1e-6)


def test_the_bound_is_broken_seldom_with_a_look_after_each_label() -> None:
    """Less than 5 % of 2,000 runs of 100 labels break the bound at any of their moments."""
    dice, broken = random.Random(11), 0
    for run in range(2000):
        true = (0.02, 0.1, 0.3)[run % 3]
        error = 0.5 * (true + 0.9)  # the machine promises 90 % for each answer
        errors = [0.5 * ((dice.random() < true) + 0.9) for _ in range(100)]
        bets = stakes(errors, 0.05)
        broken += max(most_gain(errors, bets, error, sign) for sign in (1, -1)) >= math.log(2 / 0.05)
    assert broken <= 100


def test_labels_narrow_the_bound() -> None:
    """More labels make the interval narrower; it holds the true risk, and good probabilities help."""
    dice = random.Random(5)
    rows = [(answer.probability, right) for answer, right in answers(dice, 5000, 0.5)]
    mean = sum(probability for probability, _ in rows) / len(rows)
    risk = 1 - sum(right for _, right in rows) / len(rows)
    labels = [LabelledAnswer(*dice.choice(rows)) for _ in range(1000)]
    bounds = [bound_risk(mean, labels[:number]) for number in (0, 50, 200, 1000)]
    widths = [bound.high - bound.low for bound in bounds]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.12
    assert all(bound.low <= risk <= bound.high for bound in bounds)
    bare = bound_risk(0.5, [label._replace(probability=0.5) for label in labels])
    assert widths[-1] < bare.high - bare.low


def test_no_label_bounds_nothing() -> None:
    """Without labels the risk is what the probabilities promise, anywhere from 0 to 1."""
    bound = bound_risk(0.8, [])
    assert (bound.labels, bound.low, bound.high) == (0, 0.0, 1.0)
    assert bound.risk == pytest.approx(0.2)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=30), st.floats(0, 1))
def test_a_bound_is_an_interval(rows: list[tuple[float, bool]], mean: float) -> None:
    """A bound stays within 0 and 1, whatever the labels say."""
    bound = bound_risk(mean, [LabelledAnswer(*row) for row in rows])
    assert 0 <= bound.low <= bound.high <= 1


def test_counts_of_other_labels_have_another_shape() -> None:
    """Counts of models with other numbers of labels cannot be added up."""
    assert empty_counts(3).has_shape(empty_counts(3))
    assert not Counts(**asdict(empty_counts(3))).has_shape(empty_counts(4))
