"""Intervals hold what they are said to hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_bench.records.quantiles import Interval, median, median_ratio, quantile

SAMPLES = st.lists(st.floats(0.1, 1e4), min_size=2, max_size=60)


@given(SAMPLES, st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_is_in_its_interval(values: list[float], probability: float) -> None:
    """A quantile is a sample, and within its own interval."""
    found = quantile(values, probability)
    assert found.value in values
    assert found.low <= found.value <= found.high


def test_too_few_samples_leave_a_side_open() -> None:
    """Thirty samples say nothing about how large the 99th percentile may be."""
    found = quantile([float(value) for value in range(30)], 0.99)
    assert math.isinf(found.high)
    assert "…" in found.text()


def test_coverage_of_the_interval() -> None:
    """Of 400 intervals of a known distribution, at least 93 in 100 hold its 95th percentile."""
    random = np.random.default_rng(0)
    truth = -math.log(0.05)
    held = [
        (found := quantile(random.exponential(size=300).tolist(), 0.95)).low <= truth <= found.high
        for _ in range(400)
    ]
    assert np.mean(held) >= 0.93


@given(SAMPLES, st.floats(0.5, 8))
def test_ratio_of_medians(values: list[float], factor: float) -> None:
    """Samples that are all longer by a factor have that ratio, within the interval."""
    found = median_ratio([value * factor for value in values], values, seed=0)
    assert found.value == pytest.approx(factor)
    assert found.low <= found.value * (1 + 1e-9)
    assert found.high >= found.value * (1 - 1e-9)


def test_seed_decides() -> None:
    """The same seed gives the same interval."""
    values = [1.0, 2.0, 3.0, 5.0]
    assert median_ratio(values, values[::-1], 1) == median_ratio(values, values[::-1], 1)


def test_overlap() -> None:
    """Two intervals agree when a value may be in both."""
    assert Interval(1, 0, 2).overlaps(Interval(3, 2, 4))
    assert not Interval(1, 0, 2).overlaps(Interval(3, 2.1, 4))


def test_median_of_an_even_number() -> None:
    """The median of two samples is between them."""
    assert median([1.0, 3.0]).value == 2.0
