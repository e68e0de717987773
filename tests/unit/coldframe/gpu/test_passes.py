"""Rows of different lengths in one pass."""

from hypothesis import given
from hypothesis import strategies as st

from coldframe.gpu.encoder import plan_mixed

LENGTHS = st.lists(st.integers(min_value=2, max_value=256), max_size=300)


@given(LENGTHS, st.integers(min_value=1, max_value=5000))
def test_every_row_has_its_place_within_the_positions(lengths: list[int], most: int) -> None:
    """Each row is in one batch; a batch of several rows has no more positions than allowed."""
    batches = plan_mixed(lengths, most)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= most


@given(LENGTHS, st.integers(min_value=256, max_value=5000))
def test_shorter_rows_come_first(lengths: list[int], most: int) -> None:
    """So that a request whose time ends has as many texts as can be."""
    order = [lengths[row] for batch in plan_mixed(lengths, most) for row in batch]
    assert order == sorted(order)
