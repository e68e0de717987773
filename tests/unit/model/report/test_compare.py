"""Two models on the same rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_training.report import Evaluation, EvaluationFault, answered_by, compare, part_of
from coldframe_training.report.figures.paired import mcnemar, pair
from tests.unit.model.report.evaluations import EVALUATIONS, evaluation, renamed

RIGHT = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80)


@given(RIGHT)
def test_a_pair_is_symmetric(rows: list[tuple[bool, bool]]) -> None:
    """Turned round, the difference changes its sign and the test keeps its p."""
    first, second = np.array(rows).T
    there, back = pair(first, second), pair(second, first)
    assert there.p == back.p
    assert there.difference.value == -back.difference.value
    assert (there.difference.low, there.difference.high) == (-back.difference.high, -back.difference.low)
    assert (there.beats, there.is_worse) == (back.is_worse, back.beats)


@given(RIGHT)
def test_a_difference_lies_in_its_interval(rows: list[tuple[bool, bool]]) -> None:
    """The difference of the accuracies is in its interval, inside −1 to 1."""
    first, second = np.array(rows).T
    found = pair(first, second).difference
    assert found.value == pytest.approx(first.mean() - second.mean(), abs=1e-6)
    assert -1 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"), [(0, 0, 1.0), (5, 5, 1.0), (0, 5, 0.0625), (2, 8, 0.109375)]
)
def test_mcnemar_by_hand(only_first: int, only_second: int, p: float) -> None:
    """p is twice the binomial tail: 2 × 0.5⁵ for none of five; 2 × 56 ÷ 1024 for two of ten."""
    assert mcnemar(only_first, only_second) == pytest.approx(p)


def test_interval_of_a_difference_by_hand() -> None:
    """10 and 4 of 100 rows: 6 ÷ 102 ± 1.96 × √(16 − 36 ÷ 102) ÷ 102 (Bonett and Price 2012)."""
    rows = np.arange(100)
    found = pair(rows < 10, (rows >= 10) & (rows < 14))
    assert found.difference.value == 0.06
    assert [found.difference.low, found.difference.high] == pytest.approx([-0.017185, 0.134833], abs=1e-5)
    assert found.standard_error == pytest.approx((14 - 0.36) ** 0.5 / 100, abs=1e-6)


def test_intervals_of_a_difference_hold_the_truth() -> None:
    """Of 1,000 intervals of a known difference, at least 93 in 100 hold it."""
    random = np.random.default_rng(0)
    held = []
    for _ in range(1000):
        drawn = random.choice(4, 120, p=[0.7, 0.12, 0.06, 0.12])  # both, first, second, none
        found = pair(drawn <= 1, (drawn == 0) | (drawn == 2)).difference
        held.append(found.low <= 0.06 <= found.high)
    assert np.mean(held) >= 0.93


def test_a_model_is_compared_by_row_and_by_label() -> None:
    """The order of rows and of labels does not matter."""
    first = evaluation(5, 300)
    other = renamed(first, "older", "logreg")
    order, names = np.random.default_rng(1).permutation(300), np.array([3, 0, 4, 1, 2])
    shuffled = replace(
        bare_of(other),
        labels=[other.labels[place] for place in names],
        target=np.argsort(names)[other.target][order],
        rows=other.rows[order],
        probabilities={"auto": other.probabilities["auto"][order][:, names]},
    )
    assert compare(first, shuffled) == compare(first, other)
    assert compare(first, other).beats
    turned = compare(shuffled, first)
    assert turned.paired == compare(other, first).paired
    assert turned.is_worse


def test_a_label_that_the_other_model_does_not_know() -> None:
    """A model that is older than a label is wrong on its rows, and keeps labels that are gone."""
    given = evaluation(3, 100)
    older = ["queue-2", "gone", "queue-0"]  # the second of ours is new
    known = given.target != 1
    said = np.where(given.target == 2, 0, 2)
    other = answered_by("older", "sha256:00", older, np.eye(3, dtype=np.float32)[said], like=given)
    assert other.labels == ["queue-0", "queue-1", "queue-2", "gone"]
    assert compare(given, other).other_accuracy.value == pytest.approx(known.mean())
    with pytest.raises(EvaluationFault, match=r"answers of older has the shape \(100, 2\)"):
        answered_by("older", "sha256:00", older, np.zeros((100, 2)), like=given)


def bare_of(given: Evaluation) -> Evaluation:
    """Without what has one value per row or label and is not compared."""
    return replace(given, alone=None, uncalibrated=None, baseline=None, trained_on=None)


@given(EVALUATIONS)
def test_a_model_neither_beats_itself_nor_is_worse(found: Evaluation) -> None:
    """Against itself, there is no difference."""
    made = compare(found, found)
    assert (made.beats, made.is_worse, made.paired.p) == (False, False, 1.0)
    assert "no different from" in made.line


def test_a_worse_model_is_called_worse() -> None:
    """What `--must-beat` refuses, in one line with its figures."""
    good = evaluation(4, 500)
    made = compare(renamed(good, "newer", "logreg"), good)
    assert made.is_worse
    assert not made.beats
    assert made.line.startswith("newer is worse than tickets: accuracy ")
    assert "on the same 500 rows" in made.line
    assert "\n" not in made.line


def test_other_rows_are_not_compared() -> None:
    """Models that were asked about other rows, or whose rows have other labels, are refused with counts."""
    found = evaluation(3, 50)
    with pytest.raises(EvaluationFault, match=r"49 are the same\. Expected the same rows"):
        compare(found, replace(found, rows=np.append(found.rows[:-1], 9999)))
    with pytest.raises(EvaluationFault, match="1 rows have another label"):
        compare(found, replace(found, target=np.append(found.target[:-1], (found.target[-1] + 1) % 3)))


def test_rows_left_out_are_said() -> None:
    """The line of a comparison says how many rows the other model was trained on, or that it does not say."""
    model = evaluation(4, 30)
    part = part_of(model, range(len(model.rows) - 3))
    found = compare(part, part, left_out=3)
    assert found.paired.rows == len(model.rows) - 3
    assert found.line.endswith("left out: 3 rows that tickets was trained on")
    assert "does not say which rows" in compare(model, model, left_out=None).line
