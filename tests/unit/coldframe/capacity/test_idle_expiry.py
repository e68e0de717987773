"""Draws of how long idle environments are kept."""

from itertools import islice

from coldframe.capacity.idle_expiry import IdleExpiry


def test_draws_are_within_their_bounds_and_repeat_with_the_seed() -> None:
    """A thousand draws lie between the bounds, reach near both, and are the same for the same seed."""
    drawn = list(islice(IdleExpiry(300.0, 900.0).draws(7), 1000))
    assert 300.0 <= min(drawn) < 310.0
    assert 890.0 < max(drawn) <= 900.0
    assert drawn == list(islice(IdleExpiry(300.0, 900.0).draws(7), 1000))


def test_equal_bounds_keep_every_environment_equally_long() -> None:
    """A constant is a distribution, too."""
    assert set(islice(IdleExpiry(600.0, 600.0).draws(0), 10)) == {600.0}
