"""What does not fit together is refused before anything is counted."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coldframe_training.report import EvaluationFault
from coldframe_training.report.figures.evaluation import answers_of
from tests.unit.model.report.evaluations import bare, evaluation

GOOD = bare(3, 4)


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({"probabilities": {}}, "'auto'"),
        ({"labels": ["one"]}, "4 held-out rows and 1 labels"),
        ({"target": np.array([0, 1, 2, 3])}, "classes 0 to 3; expected 0 to 2"),
        ({"rows": np.array([1, 2, 2, 3])}, "twice"),
        ({"rows": np.array([1, 2])}, r"shape \(2,\); expected \(4,\)"),
        ({"baseline": np.zeros((4, 2))}, r"baseline has the shape \(4, 2\); expected \(4, 3\)"),
        ({"alone": np.zeros(3, dtype=bool)}, "alone has the shape"),
        ({"trained_on": [1, 2]}, "trained_on has the shape"),
        ({"uncalibrated": np.full((4, 3), np.nan)}, "values from nan"),
        ({"baseline": np.full((4, 3), -1.0)}, "values from -1.0"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: dict[str, Any], found: str) -> None:
    """The message says what was found and what was expected."""
    with pytest.raises(EvaluationFault, match=found):
        replace(GOOD, **wrong)


def test_heads_are_named_without_auto() -> None:
    """`auto` is no head of its own."""
    assert evaluation(3, 5).heads == ["logreg", "mlp"]


def test_the_first_of_equally_probable_classes_is_the_answer() -> None:
    """As when the model is served."""
    answers = answers_of(np.array([[0.5, 0.5], [0.2, 0.8]], dtype=np.float32))
    assert answers.said.tolist() == [0, 1]
    assert answers.probability.dtype == np.float64
