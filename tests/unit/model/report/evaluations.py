"""Evaluations for tests: by hand, at random, and as hypothesis draws them."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from coldframe_training.report import Evaluation, Strangeness

HEADS = ("auto", "logreg", "mlp")


def probabilities_of(
    random: np.random.Generator, target: NDArray[np.int64], k: int, skill: float
) -> NDArray[np.float32]:
    """Probabilities (n, k) that know the target more or less."""
    logits = random.normal(size=(len(target), k))
    logits[np.arange(len(target)), target] += skill
    weights = np.exp(logits)
    shares: NDArray[np.float32] = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares


def evaluation(k: int, n: int, seed: int = 0, present: int | None = None) -> Evaluation:
    """Everything that an evaluation may have. present: so many of the k classes have rows."""
    random = np.random.default_rng(seed)
    target = random.integers(0, present or k, n)
    found = {
        name: probabilities_of(random, target, k, skill)
        for name, skill in zip(HEADS, (3.0, 2.0, 2.5), strict=True)
    }
    return Evaluation(
        name="tickets",
        version="sha256:3f",
        labels=[f"queue-{place}" for place in range(k)],
        target=target,
        rows=np.sort(random.permutation(5 * n)[:n]) + 1,
        probabilities=found,
        alone=found["auto"].max(axis=1) > 0.8,
        uncalibrated=probabilities_of(random, target, k, 4.0),
        baseline=probabilities_of(random, target, k, 1.5),
        trained_on=[40] * k,
        min_probability=0.6,
        strangeness={
            "tokens": Strangeness(random.random(n), random.random(9) ** 0.2, True),
            "probability of auto": Strangeness(1 - found["auto"].max(axis=1), random.random(9), False),
        },
        seed=20,
        settings={"test share": 0.2, "group": None},
    )


def bare(k: int, n: int, seed: int = 0) -> Evaluation:
    """Only what an evaluation must have."""
    found = evaluation(k, n, seed)
    return Evaluation(
        found.name,
        found.version,
        found.labels,
        found.target,
        found.rows,
        {"auto": found.probabilities["auto"]},
    )


def renamed(given: Evaluation, name: str, head: str) -> Evaluation:
    """Another model on the same rows, whose `auto` is a head of the first."""
    return replace(given, name=name, probabilities={"auto": given.probabilities[head]})


EVALUATIONS = st.builds(
    evaluation, k=st.integers(2, 9), n=st.integers(1, 60), seed=st.integers(0, 999), present=st.none()
)
