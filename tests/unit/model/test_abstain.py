"""A threshold for a wanted accuracy, and what it promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coldframe_training.thresholds.abstaining import OutOfReach, abstain, choose_min_probability

Rows = tuple[NDArray[np.float64], NDArray[np.bool_]]


def draw(seed: int, rows: int, lean: float = 1.0) -> Rows:
    """Answers that are right with their probability to the power of `lean`: above 1, it promises too much."""
    random = np.random.default_rng(seed)
    probability = random.uniform(0.3, 1, rows)
    return probability, random.random(rows) < probability**lean


def true_accuracy(threshold: float, lean: float) -> float:
    """Mean of p^lean for p uniform between the threshold and 1."""
    low = max(threshold, 0.3)
    return (1 - low ** (lean + 1)) / ((lean + 1) * (1 - low)) if low < 1 else 1.0


rows_of = st.builds(draw, seed=st.integers(0, 9999), rows=st.integers(1, 400), lean=st.floats(0.1, 3))


def chosen(rows: Rows, wanted: float) -> float:
    """The threshold; infinite when there is none."""
    try:
        return choose_min_probability(*rows, wanted).min_probability
    except OutOfReach:
        return float("inf")


@pytest.mark.parametrize(("rows", "lean", "wanted"), [(100, 1.0, 0.8), (300, 1.5, 0.75), (1000, 2.0, 0.7)])
def test_promise_holds_on_new_rows(rows: int, lean: float, wanted: float) -> None:
    """At most 5 % of the choices have less than the wanted accuracy in truth, and many rows have a choice."""
    thresholds = [chosen(draw(seed, rows, lean), wanted) for seed in range(300)]
    broken = [found < 2 and true_accuracy(found, lean) < wanted for found in thresholds]
    assert np.mean(broken) <= 0.05
    assert np.isfinite(thresholds).mean() > (0.05 if rows < 200 else 0.5)


@pytest.mark.parametrize("rows", [50, 300, 2000])
def test_luck_is_no_accuracy(rows: int) -> None:
    """A model that is right 89 times of 100, however sure it is, hardly ever gets a threshold for 90 %."""
    random = np.random.default_rng(rows)
    lucky = [chosen((random.random(rows), random.random(rows) < 0.89), 0.9) < 2 for _ in range(300)]
    assert np.mean(lucky) <= 0.05


def test_enough_rows_come_near_the_best() -> None:
    """With many rows the threshold is a little above the lowest that is truly good enough."""
    found = choose_min_probability(*draw(1, 20000), 0.8)
    assert 0.6 <= found.min_probability < 0.65  # uniform from 0.6 to 1: 0.8 of these answers are right
    assert found.at_least >= 0.8 > found.at_least - 0.02


@given(rows_of, st.floats(0.3, 1), st.floats(0.3, 1))
def test_more_accuracy_needs_no_lower_threshold(rows: Rows, first: float, second: float) -> None:
    """The threshold never falls as the wanted accuracy rises."""
    low, high = sorted((first, second))
    assert chosen(rows, low) <= chosen(rows, high)


@given(rows_of, st.floats(0.3, 1))
def test_threshold_does_what_it_says(rows: Rows, wanted: float) -> None:
    """Coverage and accuracy are those of the rows above the threshold, and the accuracy is promised."""
    probability, right = rows
    try:
        found = choose_min_probability(probability, right, wanted)
    except OutOfReach:
        return
    kept = probability >= found.min_probability
    assert (found.coverage, found.accuracy) == pytest.approx((kept.mean(), right[kept].mean()))
    assert wanted - 1e-9 <= found.at_least <= found.accuracy


@given(rows_of)
def test_what_is_out_of_reach_is_told_with_what_is_not(rows: Rows) -> None:
    """The accuracy that the message offers is one that can be chosen."""
    with pytest.raises(OutOfReach, match=r"promises an accuracy of 100.0% with 95% confidence") as found:
        choose_min_probability(*rows, 1.0)
    offered = float(str(found.value).split("(at least ")[1].split("%")[0]) / 100
    assert offered == 0 or chosen(rows, max(0.0, offered - 0.0006)) < 2


def test_few_rows_prove_nothing() -> None:
    """Twenty answers that are all right do not promise 90 %; a hundred do."""
    sure = np.linspace(0.5, 1, 100)
    with pytest.raises(OutOfReach, match=r"20 validation rows.* min_probability 0 answers 100\.0%"):
        choose_min_probability(sure[:20], np.ones(20, dtype=bool), 0.9)
    assert choose_min_probability(sure, np.ones(100, dtype=bool), 0.9).min_probability == 0


def test_answers_of_one_probability_stay_together() -> None:
    """A threshold cannot part answers of one probability."""
    probability, right = np.full(300, 0.7), np.arange(300) >= 15
    assert choose_min_probability(probability, right, 0.9).coverage == 1
    with pytest.raises(OutOfReach):
        choose_min_probability(probability, right, 0.95)


def test_of_a_head(capsys: pytest.CaptureFixture[str]) -> None:
    """A head's threshold comes from its most probable classes; the head is named either way."""
    target = np.arange(100) % 2
    answers = np.eye(2)[target] * 0.8 + 0.1
    assert abstain("mlp", answers, target, 0.9) == 0
    assert "mlp: min_probability 0 answers 100.0%" in capsys.readouterr().out
    with pytest.raises(OutOfReach, match="mlp: No min_probability"):
        abstain("mlp", answers, 1 - target, 0.9)
