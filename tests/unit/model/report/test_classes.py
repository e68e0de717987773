"""Counts, precision, recall, F1 and their intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe_training.report import Evaluation
from coldframe_training.report.figures.classes import accuracy, class_scores, macro_f1
from coldframe_training.report.figures.confusion import confusion_cells, most_confused
from coldframe_training.report.figures.evaluation import answers_of
from coldframe_training.report.figures.intervals import wilson
from tests.unit.model.report.evaluations import EVALUATIONS


def said(given: Evaluation) -> np.ndarray:
    return answers_of(given.probabilities["auto"]).said


@given(EVALUATIONS)
def test_confusion_matrix_sums(found: Evaluation) -> None:
    """Rows of the matrix sum to the support, columns to the answers, the diagonal to what is right."""
    k, answers = len(found.labels), said(found)
    matrix = np.zeros((k, k), dtype=np.int64)
    for cell in confusion_cells(found.target, answers, k):
        matrix[cell.label, cell.said] = cell.count
    assert matrix.sum(axis=1).tolist() == np.bincount(found.target, minlength=k).tolist()
    assert matrix.sum(axis=0).tolist() == np.bincount(answers, minlength=k).tolist()
    assert matrix.trace() == (found.target == answers).sum()


@given(EVALUATIONS)
def test_scores_against_a_plain_computation(found: Evaluation) -> None:
    """Precision, recall and F1 are what their definitions give, row by row."""
    answers = said(found).tolist()
    target = found.target.tolist()
    for place, score in enumerate(class_scores(found.labels, found.target, said(found), None)):
        hits = sum(a == t == place for a, t in zip(answers, target, strict=True))
        precision = hits / answers.count(place) if place in answers else None
        recall = hits / target.count(place) if place in target else None
        assert score.precision == pytest.approx(precision, abs=1e-6)
        assert (score.recall and score.recall.value) == pytest.approx(recall, abs=1e-6)
        if recall is None:
            assert score.f1 is None
        elif not hits:
            assert score.f1 == 0
        else:
            assert precision is not None
            assert score.f1 == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-6)


@settings(max_examples=25)
@given(EVALUATIONS)
def test_macro_f1_is_the_mean_of_the_classes(found: Evaluation) -> None:
    """Macro F1 is the mean over the classes that have rows, and lies in its interval."""
    scores = class_scores(found.labels, found.target, said(found), None)
    macro = macro_f1(found.target, said(found), len(found.labels), seed=1)
    assert macro.value == pytest.approx(np.mean([s.f1 for s in scores if s.f1 is not None]), abs=1e-5)
    assert 0 <= macro.low <= macro.value <= macro.high <= 1


def test_macro_f1_interval_holds_the_truth() -> None:
    """Of 100 intervals, at least 90 hold the macro F1 that the rates of the model give."""
    random = np.random.default_rng(3)
    rates = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8]])

    def draw(rows: int) -> tuple[np.ndarray, np.ndarray]:
        target = np.repeat(np.arange(3), rows)
        return target, np.concatenate([random.choice(3, rows, p=rates[c]) for c in range(3)])

    truth = np.mean(2 * rates.diagonal() / (1 + rates.sum(axis=0)))
    intervals = [macro_f1(*draw(40), 3, seed=0) for _ in range(100)]
    assert np.mean([found.low <= truth <= found.high for found in intervals]) >= 0.90


def test_pairs_are_ordered_by_rows() -> None:
    """The most confused pairs have the most rows, and right answers are no pairs."""
    target, answers = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 1, 0, 2, 1, 2])
    pairs = most_confused(confusion_cells(target, answers, 3), ["a", "b", "c"])
    assert [(p.label, p.said, p.count, p.share) for p in pairs] == [
        ("a", "b", 2, pytest.approx(2 / 3, abs=1e-6)),
        ("b", "c", 1, 0.5),
    ]


@given(st.integers(0, 50), st.integers(1, 50))
def test_wilson_interval_holds_its_share(hits: int, more: int) -> None:
    """A share is in its interval, which is inside 0 to 1 and never without width."""
    found = wilson(hits, hits + more)
    assert found is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


def test_wilson_published_example() -> None:
    """15 of 148: 0.0624 to 0.1605 (Newcombe 1998, table I, method 3)."""
    found = wilson(15, 148)
    assert found is not None
    assert [found.low, found.high] == pytest.approx([0.0624, 0.1605], abs=1e-4)
    assert wilson(0, 0) is None


def test_accuracy_counts_right_rows() -> None:
    """Three of four rows are right."""
    assert accuracy(np.array([0, 1, 1, 0]), np.array([0, 1, 1, 1])).value == 0.75
