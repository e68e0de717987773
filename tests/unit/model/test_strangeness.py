"""Every measure of strangeness, of rows and of texts of other kinds."""

import numpy as np
import pytest
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from coldframe.model.heads import Centroids
from coldframe_training.out_of_distribution.strangeness import Seen, measures, strangeness
from coldframe_training.publishing.head_files import tensor_of
from coldframe_training.thresholds.estimator_outputs import Guesses

FACTS = EstimatorFacts(
    vocabulary=1,
    scales=[1.0] * 2,
    bias=[0.0] * 2,
    temperature=1.0,
    threshold=0.7,
    partner="mlp",
    usual=[-4.0, -3.0, -2.0, -1.0],
)
CENTROIDS = Centroids(
    tensor_of(np.eye(2, dtype=np.float32)), tensor_of(np.array([0, 0.1, 0.2, 0.5], np.float32))
)


def seen(probability: float, strange: float, embedding: tuple[float, float]) -> Seen:
    """One text."""
    probabilities: NDArray[np.float64] = np.array([[probability, 1 - probability]])
    guessed = Guesses(probabilities, np.ones(1, dtype=bool), np.array([strange]))
    return Seen(np.array([embedding], dtype=np.float32), guessed, probabilities)


@pytest.mark.parametrize(("probability", "score"), [(0.9, 0.25), (0.6, 0.75)])
def test_score_of_who_answers(probability: float, score: float) -> None:
    """Where the estimator answers alone, `auto` has the score of the tokens; else that of the embedding."""
    found = measures(seen(probability, -3.5, (0.6, 0.72)), FACTS, CENTROIDS)
    assert [found[name][0] for name in ("tokens", "embedding")] == [0.25, 0.75]
    assert found["auto"] == score
    assert found["probability of auto"] == pytest.approx(1 - probability)


def test_both_sides() -> None:
    """Each measure has the rows and the texts of other kinds, and says whether it is a score."""
    usual, other = seen(0.9, -9.0, (1, 0)), seen(0.6, 0.0, (-1, 0))
    found = strangeness(usual, other, FACTS, CENTROIDS)
    assert [name for name, measure in found.items() if measure.is_score] == ["embedding", "tokens", "auto"]
    for measure in found.values():
        assert measure.held_out[0] < measure.others[0]
