"""Weights of the head `ensemble`, from answers to rows that no member was trained on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coldframe.pipeline.ensemble import mean_answers
from coldframe.vectors import to_floats
from coldframe_training.embeddings.matrices import to_vectors
from coldframe_training.training.train_ensemble import choose_weights, mean_rows, train_ensemble

ROWS, LABELS = 200, 3
TARGET = np.arange(ROWS) % LABELS


def answers(seed: int, skill: float) -> NDArray[np.float64]:
    """Probabilities of a member: the greater its skill, the more of them is the right label's."""
    chance = np.random.default_rng(seed)
    rows = chance.dirichlet(np.ones(LABELS), ROWS)
    rows[np.arange(ROWS), TARGET] += skill * chance.random(ROWS)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True), dtype=np.float64)


def surprise(rows: NDArray[np.floating]) -> float:
    return float(-np.log(np.maximum(rows[np.arange(ROWS), TARGET], 1e-12)).mean())


members = st.dictionaries(
    st.sampled_from(["auto", "logreg", "rf", "mlp"]),
    st.tuples(st.integers(0, 99), st.floats(0, 3)),
    min_size=1,
)


@settings(max_examples=30)
@given(members)
def test_weights_sum_to_one(skills: dict[str, tuple[int, float]]) -> None:
    """Weights are positive and sum to one, and no member alone makes the labels likelier."""
    told = {name: answers(*skill) for name, skill in skills.items()}
    weights = choose_weights(told, TARGET)
    assert sum(weights.values()) == pytest.approx(1, abs=1e-3)
    assert min(weights.values()) > 0
    best = min(surprise(rows) for rows in told.values())
    assert surprise(mean_rows(told, weights)) <= best + 0.01  # members of little weight are left out


def test_the_order_does_not_matter() -> None:
    """The same members have the same weights in any order."""
    told = {"auto": answers(1, 1.0), "rf": answers(2, 0.5), "mlp": answers(3, 2.0)}
    turned = dict(reversed(told.items()))
    assert choose_weights(told, TARGET) == pytest.approx(choose_weights(turned, TARGET), abs=1e-3)


def test_a_useless_member_is_left_out() -> None:
    """A member that adds nothing costs time: it is none."""
    weights = choose_weights({"auto": answers(1, 3.0), "rf": np.full((ROWS, LABELS), 1 / LABELS)}, TARGET)
    assert weights == {"auto": 1.0}


def test_means_are_the_served_ones() -> None:
    """Training's mean is the served mean, to the bit."""
    told = {"auto": answers(1, 1.0), "mlp": answers(3, 2.0)}
    weights = {"auto": 0.7, "mlp": 0.3}
    scored = {name: [row + bytes(4) for row in to_vectors(rows)] for name, rows in told.items()}
    served = [to_floats(row)[:-1] for row in mean_answers(scored, weights)]
    assert mean_rows(told, weights).tolist() == served


@pytest.mark.parametrize("accuracy", [None, 0.8, 1.0])
def test_facts_of_an_ensemble(accuracy: float | None) -> None:
    """Facts have accuracies on test and validation rows; an accuracy out of reach leaves no bound."""
    held_out = {"auto": answers(1, 1.0), "rf": answers(2, 0.9)}
    test = {"text": {"auto": answers(4, 1.0), "rf": answers(5, 0.9)}}
    trained = train_ensemble(held_out, TARGET, test, TARGET, accuracy)
    reached = float((trained.answers.argmax(axis=1) == TARGET).mean())
    assert trained.facts.accuracy == {"text": round(reached, 4)}
    assert (trained.facts.min_probability > 0) == (accuracy == 0.8)
