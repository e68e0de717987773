"""Calibration, coverage and the estimator's share."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_training.files.paths import TRAINED
from coldframe_training.report import Evaluation, read_figures
from coldframe_training.report.figures.calibration import reliability
from coldframe_training.report.figures.coverage import coverage
from coldframe_training.report.figures.evaluation import Answers, answers_of
from coldframe_training.report.figures.sharing import estimator_share
from tests.unit.model.report.evaluations import EVALUATIONS


def judged(given: Evaluation) -> tuple[Answers, np.ndarray]:
    answers = answers_of(given.probabilities["auto"])
    return answers, answers.said == given.target


@given(EVALUATIONS)
def test_calibration_error_is_bounded(found: Evaluation) -> None:
    """The error is at least the distance of the means, at most 1, and what the bins say."""
    answers, right = judged(found)
    curve = reliability(answers, right, seed=0)
    error = curve.expected_calibration_error
    by_bin = sum(b.rows * abs(b.accuracy.value - b.mean_probability) for b in curve.bins) / len(right)
    assert abs(answers.probability.mean() - right.mean()) - 1e-6 <= error <= 1
    assert error == pytest.approx(by_bin, abs=1e-5)
    assert sum(b.rows for b in curve.bins) == len(right)


@given(EVALUATIONS)
def test_answers_lie_in_their_bins(found: Evaluation) -> None:
    """Bins have one width, and the mean probability of a bin is between its ends."""
    for b in reliability(*judged(found), seed=0).bins:
        assert b.high - b.low == pytest.approx(1 / 15, abs=1e-5)
        assert b.low - 1e-6 <= b.mean_probability <= b.high + 1e-6


def test_a_calibrated_model_has_the_error_of_chance() -> None:
    """Answers that are right as often as promised have about the error that chance explains."""
    random = np.random.default_rng(0)
    probability = random.uniform(0.3, 1, 2000)
    right = random.random(2000) < probability
    found = reliability(Answers(np.zeros(2000, dtype=np.int64), probability), right, seed=1)
    assert found.expected_calibration_error < 2 * found.by_chance
    sure = reliability(Answers(np.zeros(2000, dtype=np.int64), np.sqrt(probability)), right, seed=1)
    assert sure.expected_calibration_error > 3 * sure.by_chance


@given(EVALUATIONS)
def test_coverage_falls_as_the_threshold_rises(found: Evaluation) -> None:
    """A higher threshold never answers more rows; the lowest of the curve answers all."""
    answers, right = judged(found)
    made = coverage(answers, right, None)
    assert all(a.answered < b.answered for a, b in pairwise(made.curve))
    assert all(a.min_probability >= b.min_probability for a, b in pairwise(made.curve))
    assert all(a.answered >= b.answered for a, b in pairwise(made.by_threshold))
    assert made.curve[-1].coverage == 1
    assert made.curve[-1].accuracy is not None
    assert made.curve[-1].accuracy.value == pytest.approx(right.mean(), abs=1e-6)


@given(EVALUATIONS, st.floats(0, 1))
def test_a_threshold_is_counted_plainly(found: Evaluation, threshold: float) -> None:
    """At a threshold, the answers of at least that probability survive."""
    answers, right = judged(found)
    point = coverage(answers, right, threshold).chosen
    kept = answers.probability >= threshold
    assert point is not None
    assert point.answered == kept.sum()
    if kept.any():
        assert point.accuracy is not None
        assert point.accuracy.value == pytest.approx(right[kept].mean(), abs=1e-6)
    else:
        assert point.accuracy is None


@given(EVALUATIONS)
def test_a_wanted_accuracy_is_reached_at_its_threshold(found: Evaluation) -> None:
    """The threshold for a wanted accuracy, applied, gives it."""
    answers, right = judged(found)
    for row in coverage(answers, right, None).wanted:
        if row.point:
            kept = answers.probability >= row.point.min_probability
            assert kept.sum() == row.point.answered
            assert right[kept].mean() >= row.wanted - 1e-9


def test_an_answer_at_the_threshold_survives() -> None:
    """Below a threshold means below: an answer of just that probability is given."""
    answers = Answers(np.zeros(3, dtype=np.int64), np.array([0.75, 0.5, 0.25]))
    point = coverage(answers, np.ones(3, dtype=bool), 0.5).chosen
    assert point is not None
    assert point.answered == 2


def test_equal_probabilities_stay_together() -> None:
    """A threshold cannot part answers of one probability."""
    answers = Answers(np.zeros(4, dtype=np.int64), np.array([0.9, 0.5, 0.5, 0.5]))
    made = coverage(answers, np.array([True, True, False, False]), None)
    assert [point.answered for point in made.curve] == [1, 4]


def test_agreement_is_counted_where_the_estimator_answers_alone() -> None:
    """Rows that the ensemble answers do not count as agreement."""
    auto = Answers(np.array([0, 1, 1, 0]), np.array([0.9, 0.8, 0.5, 0.5]))
    head = Answers(np.array([0, 0, 0, 1]), np.ones(4))
    alone, right = np.array([True, True, False, False]), np.array([True, False, True, False])
    found = estimator_share(alone, auto, {"mlp": head}, right)
    assert found.alone == 2
    assert found.promised == pytest.approx(0.85)
    assert [a.agrees.value for a in found.agreement] == [0.5]
    assert found.accuracy_alone is not None
    assert found.accuracy_alone.value == 0.5


def test_an_estimator_that_never_answers_alone() -> None:
    """Nothing is promised and nothing agrees where there is nothing."""
    auto = Answers(np.array([0, 1]), np.array([0.9, 0.8]))
    found = estimator_share(np.zeros(2, dtype=bool), auto, {"mlp": auto}, np.ones(2, dtype=bool))
    assert (found.share.value, found.promised, found.accuracy_alone, found.agreement) == (0, None, None, [])


def test_probabilities_of_the_example() -> None:
    """The answers of the committed example are right within five points of what they say, by its report."""
    report = read_figures(TRAINED)
    assert report.summary.expected_calibration_error < 0.05
    assert report.reliability_before is not None
    assert report.reliability_before.expected_calibration_error > 0.1
