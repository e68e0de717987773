"""Weights of the head `ensemble`, chosen on rows that no member was trained on, and its results."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from coldframe.model.bundle import EnsembleFacts
from coldframe.model.files import ENSEMBLE
from coldframe.pipeline.ensemble import mean_answers
from coldframe.vectors import VALUE_BYTES
from coldframe_training.embeddings.matrices import to_matrix, to_vectors
from coldframe_training.thresholds.abstaining import OutOfReach, abstain
from coldframe_training.training_data.samples import share_right

_LEAST_WEIGHT = 0.02  # a member with less costs more time than it is worth
_LEAST = 1e-12  # probability: a label that a member finds impossible has a finite loss
_DIGITS = 4

Answers = Mapping[str, NDArray[np.floating]]
"""Probabilities (n, k) by member."""


class TrainedEnsemble(NamedTuple):
    """The facts, and the answers to the test samples as callers send them, (n, k)."""

    facts: EnsembleFacts
    answers: NDArray[np.float32]


def train_ensemble(
    held_out: Answers,
    target: NDArray[np.int64],
    test: Mapping[str, Answers],
    test_target: NDArray[np.int64],
    accuracy: float | None = None,
) -> TrainedEnsemble:
    """Chooses the weights on the validation rows, and judges them on the test samples.

    held_out: answers to validation rows, `auto` first. target: their classes. test: answers by the form of
    the samples. accuracy: what the ensemble has to reach by abstaining; if it cannot, it answers everything.
    """
    weights = choose_weights(held_out, target)
    validated = mean_rows(held_out, weights)
    answers = {form: mean_rows(members, weights) for form, members in test.items()}
    facts = EnsembleFacts(
        weights,
        {form: round(share_right(rows, test_target), 4) for form, rows in answers.items()},
        round(share_right(validated, target), 4),
        0.0 if accuracy is None else _least_probability(validated, target, accuracy),
    )
    shares = ", ".join(f"{name} {weight:.0%}" for name, weight in weights.items())
    print(f"ensemble of {shares}: {next(iter(facts.accuracy.values())):.1%} of the held-out rows right")
    return TrainedEnsemble(facts, next(iter(answers.values())))


def choose_weights(answers: Answers, target: NDArray[np.int64]) -> dict[str, float]:
    """Weights under which the held-out labels are most likely: positive, and 1 together up to rounding.

    Members with next to no weight are left out, and the others weighed again.
    """
    names, weights = list(answers), np.ones(1)
    while len(names) > 1:
        weights = _likeliest(np.stack([_of_labels(answers[name], target) for name in names]))
        if weights.min() >= _LEAST_WEIGHT:
            break
        names.pop(int(weights.argmin()))
        weights = np.ones(1)
    return {name: round(float(weight), _DIGITS) for name, weight in zip(names, weights, strict=True)}


def mean_rows(answers: Answers, weights: Mapping[str, float]) -> NDArray[np.float32]:
    """The mean of the members' answers, (n, k), as it is served, to the bit."""
    score = bytes(VALUE_BYTES)  # an answer ends with one
    members = {name: [row + score for row in to_vectors(answers[name])] for name in weights}
    return to_matrix(mean_answers(members, weights))[:, :-1]


def _of_labels(answers: NDArray[np.floating], target: NDArray[np.int64]) -> NDArray[np.float64]:
    """Probability of the right label of each row, (n,)."""
    return np.maximum(answers[np.arange(len(target)), target].astype(np.float64), _LEAST)


def _likeliest(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (m,) that make the right labels most likely. probabilities: theirs, by member, (m, n)."""
    members, rows = probabilities.shape

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        mixed = np.maximum(weights @ probabilities, _LEAST)
        return float(-np.log(mixed).mean()), -(probabilities / mixed).sum(axis=1) / rows

    solved = minimize(
        loss,
        np.full(members, 1 / members),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * members,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
        options={"maxiter": 500, "ftol": 1e-10},
    )
    weights = np.maximum(solved.x, 0.0)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _least_probability(answers: NDArray[np.float32], target: NDArray[np.int64], accuracy: float) -> float:
    try:
        return abstain(ENSEMBLE, answers, target, accuracy)
    except OutOfReach as exc:
        print(f"{exc} It answers everything.")
        return 0.0
