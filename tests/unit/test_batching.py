"""Which rows share a forward pass."""

from hypothesis import given
from hypothesis import strategies as st

from coldframe.batching import plan_batches

lengths_of_rows = st.lists(st.integers(1, 256), max_size=200)
budgets = st.integers(1, 2048)


@given(lengths_of_rows, budgets)
def test_every_row_once(lengths: list[int], budget: int) -> None:
    """The batches hold every row exactly once."""
    rows = [row for batch in plan_batches(lengths, budget) for row in batch]
    assert sorted(rows) == list(range(len(lengths)))


@given(lengths_of_rows, budgets)
def test_nothing_is_padded(lengths: list[int], budget: int) -> None:
    """Rows of one batch have one length."""
    assert all(len({lengths[row] for row in batch}) == 1 for batch in plan_batches(lengths, budget))


@given(lengths_of_rows, budgets)
def test_budget_holds(lengths: list[int], budget: int) -> None:
    """A batch of several rows never exceeds the token budget."""
    for batch in plan_batches(lengths, budget):
        assert len(batch) == 1 or sum(lengths[row] for row in batch) <= budget


@given(lengths_of_rows, budgets)
def test_shortest_first(lengths: list[int], budget: int) -> None:
    """Batches come in order of their rows' length."""
    order = [lengths[batch[0]] for batch in plan_batches(lengths, budget)]
    assert order == sorted(order)
