"""Traces of our own making have the rate and the shape that they are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from coldframe_local.planner.traces.made import SHAPES, made


@pytest.mark.parametrize("shape", ["constant", "diurnal", "on-off"])
def test_mean_rate_is_the_one_asked_for(shape: str) -> None:
    """A day of two requests a second is about 172,800 requests."""
    assert len(made(2.0, 24.0, shape, seed=1)) == pytest.approx(172_800, rel=0.02)


def test_on_off_is_silent_three_quarters_of_an_hour() -> None:
    """All requests fall into the first quarter of each hour."""
    assert (made(1.0, 6.0, "on-off", seed=1).arrivals_s % 3600 < 900).all()


def test_bursts_come_on_top_every_ten_minutes() -> None:
    """About fifty requests within the first two seconds, and the mean rate elsewhere."""
    arrivals_s = made(1.0, 10.0, "bursts", seed=1).arrivals_s
    in_burst = arrivals_s % 600 < 2
    assert in_burst.sum() / 60 == pytest.approx(52, rel=0.1)
    assert (~in_burst).sum() == pytest.approx(36_000, rel=0.02)


def test_seed_decides_every_arrival() -> None:
    """The same seed gives the same trace, in order; another one another."""
    for shape in SHAPES:
        first = made(1.0, 1.0, shape, seed=4).arrivals_s
        assert np.array_equal(first, made(1.0, 1.0, shape, seed=4).arrivals_s)
        assert not np.array_equal(first, made(1.0, 1.0, shape, seed=5).arrivals_s)
        assert (np.diff(first) >= 0).all()
