"""Rows are rejected without the encoder only where the estimator leaves a label no chance."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.columns import predict_column
from coldframe.model.estimator import LEAST, Guess, mean_with
from coldframe.model.files import AUTO
from coldframe.sql.functions import SqlFunctions
from coldframe.sql.rejecting import are_topic, odds_against
from coldframe.timing import Deadline
from coldframe.vectors import Vector, to_vector
from tests.conftest import LABELS, TinyEncoder, TinyEstimator, tiny_predictor

PROBABILITIES = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(
    lambda values: [(value + 1e-9) / (sum(values) + 3e-9) for value in values]
)


@given(
    st.lists(st.one_of(st.none(), st.text("abc 1é", max_size=9)), max_size=40),
    st.sampled_from(LABELS),
    st.sampled_from(["estimator", "whole"]),
)
def test_without_rejection_answers_are_those_of_auto(
    texts: list[str | None], label: str, cached: str
) -> None:
    """With infinite odds, each row is what `topic = label` says; an abstaining answer is no label."""
    predictor = tiny_predictor()
    expected = [
        None if answer is None else answer.label == label
        for answer in predict_column(tiny_predictor(), texts, ["auto"])["auto"]
    ]
    if cached == "whole":
        predict_column(predictor, texts, ["auto"])
    assert are_topic(predictor, texts, label, math.inf) == expected


def test_an_abstaining_answer_is_no_label() -> None:
    """A text whose sure estimate is too improbable for an answer has no label."""
    predictor = tiny_predictor()
    sure = "ab"
    assert are_topic(predictor, [sure], LABELS[0]) == [True]
    predictor.min_probability["auto"] = 0.9
    assert are_topic(predictor, [sure], LABELS[0]) == [False]


def test_the_encoder_is_spared() -> None:
    """A rejected row is not encoded; a row with smaller odds is."""
    encoder = TinyEncoder()
    predictor = tiny_predictor(encoder)
    unsure = "abc"  # 0.2, 0.3, 0.5: odds of 2.5 against the first label
    assert are_topic(predictor, [unsure], LABELS[0], rejecting_odds=2.4) == [False]
    assert not encoder.batches
    are_topic(predictor, [unsure], LABELS[0], rejecting_odds=2.6)
    assert encoder.batches


class FarEstimator(TinyEstimator):
    """Finds the first label 45 times as improbable as the last, and is not sure."""

    def guess(self, ids: Sequence[int], deadline: Deadline) -> Guess:
        return Guess([0.01, 0.49, 0.5], False, 0.25)


class CertainHead:
    """Knows that every text has the first label."""

    def predict(self, embeddings: Sequence[Vector]) -> list[Vector]:
        return [to_vector([0.998, 0.001, 0.001])] * len(embeddings)


def test_by_default_no_row_is_lost() -> None:
    """`is_topic` is `topic = x` also for a row that an encoder wins against odds of 45."""
    predictor = tiny_predictor(read_head=lambda _: CertainHead(), estimator=FarEstimator())
    exact = SqlFunctions(predictor, AUTO)
    assert exact.topic(["abc"]) == [LABELS[0]]
    for position, label in enumerate(LABELS):
        assert exact.is_topic(["abc"], [label]) == [position == 0]
    assert SqlFunctions(predictor, AUTO, rejecting_odds=30).is_topic(["abc"], [LABELS[0]]) == [False]


@given(PROBABILITIES, PROBABILITIES, st.integers(0, 2))
def test_odds_of_a_partner_that_overturns(own: list[float], partner: list[float], position: int) -> None:
    """A label wins only when the partner's odds for it are at least the estimator's against it."""
    guess = Guess(own, False, 0.0)
    best = own.index(max(own))
    answer = mean_with(guess, partner)
    if answer.index(max(answer)) == position:
        partners = (partner[position] + LEAST) / (partner[best] + LEAST)
        assert odds_against(guess, position) <= partners * (1 + 1e-9)


@pytest.mark.parametrize("label", LABELS)
def test_the_favourite_is_never_rejected(label: str) -> None:
    """Odds against the estimator's favourite are one."""
    probabilities = [0.1, 0.1, 0.1]
    probabilities[LABELS.index(label)] = 0.8
    assert odds_against(Guess(probabilities, False, 0.0), LABELS.index(label)) == 1.0
