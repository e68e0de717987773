"""How well a measure tells texts of other kinds."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_training.report import EvaluationFault, Strangeness, make_report
from coldframe_training.report.figures.detection import auroc, detections
from coldframe_training.report.page import render_page
from tests.unit.model.report.evaluations import bare, evaluation

shares = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), min_size=1, max_size=40).map(np.array)
sides = st.builds(Strangeness, shares, shares, st.just(True))


@given(sides)
def test_area_counts_pairs(found: Strangeness) -> None:
    """The area is the share of pairs in which the other text looks stranger; half of the ties count."""
    pairs = found.others[:, None] - found.held_out[None, :]
    area = auroc(found)
    assert area.value == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean(), abs=1e-6)
    assert 0 <= area.low <= area.value <= area.high <= 1
    assert area.low < area.high


@given(sides)
def test_turned_round(found: Strangeness) -> None:
    """With the sides exchanged, area and interval are what is missing to 1."""
    area, turned = auroc(found), auroc(Strangeness(found.others, found.held_out, True))
    assert (turned.value, turned.low, turned.high) == pytest.approx(
        (1 - area.value, 1 - area.high, 1 - area.low), abs=2e-6
    )


def test_interval_holds_the_truth() -> None:
    """Of 300 samples from two normal distributions, about 95 % have the true area in their interval."""
    random = np.random.default_rng(3)
    shift, held = 1.5, []
    for _ in range(300):
        found = auroc(Strangeness(random.normal(0, 1, 80), random.normal(shift, 1, 50), False))
        held.append(found.low <= 0.855578 <= found.high)  # Φ(1.5 / √2)
    assert 0.92 <= np.mean(held) <= 0.99


def test_what_is_caught() -> None:
    """Caught are the texts that look stranger than 95 % of the rows; shares of bins sum to 1."""
    rows, others = (np.arange(100) + 0.5) / 100, np.array([0.5, 0.94, 0.95, 0.99, 1.0])
    found = detections({"tokens": Strangeness(rows, others, True)})
    assert found is not None
    measure = found.measures[0]
    assert measure.caught.value == pytest.approx(3 / 5)  # the limit is 0.945
    assert measure.held_out == [0.05] * 20
    assert sum(measure.others) == pytest.approx(1)
    assert detections({}) is None


def test_page_says_why_nothing_is_caught() -> None:
    """Where more than a twentieth of the rows have the highest score, the page says so, and not 0.0%."""
    rows = np.concatenate([np.linspace(0, 0.9, 90), np.ones(10)])
    coarse = replace(evaluation(3, 100), strangeness={"embedding": Strangeness(rows, np.ones(9), True)})
    assert "none: 10.0% of the rows have the highest scores, too" in render_page(make_report(coarse))


def test_page_has_both_distributions() -> None:
    """The page has the area of each measure, draws the scores, and is silent where nothing was measured."""
    given = evaluation(4, 120)
    report = make_report(given)
    page = render_page(report)
    assert report.out_of_distribution is not None
    for measure in report.out_of_distribution.measures:
        assert f"{measure.auroc.value:.1%}" in page
    assert len(re.findall("Distributions of the score by", page)) == 1 * 2  # seen, and read aloud
    assert "Does it see what it does not know?" in page
    assert "Does it see what it does not know?" not in render_page(make_report(bare(4, 120)))


@pytest.mark.parametrize(
    ("measure", "found"),
    [
        (Strangeness(np.zeros(3), np.zeros(2), True), "tokens has the shape"),
        (Strangeness(np.zeros(4), np.zeros(0), True), "no texts of other kinds"),
        (Strangeness(np.zeros(4), np.full(2, 1.5), True), "values from 1.5"),
    ],
)
def test_what_does_not_fit_is_refused(measure: Strangeness, found: str) -> None:
    """A measure has a value between 0 and 1 of each row, and of one other text at least."""
    given = bare(3, 4)
    with pytest.raises(EvaluationFault, match=found):
        replace(given, strangeness={"tokens": measure})
