"""Which rows share a forward pass."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.model.budget import measure_budget
from coldframe.model.encoder import plan_batches

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


class Machine:
    """A clock and an encoder: each pass takes a fixed time, and each token more beyond `cache_tokens`."""

    def __init__(self, pass_s: float, cache_tokens: int) -> None:
        self.now_s = 0.0
        self._pass_s, self._cache_tokens = pass_s, cache_tokens

    def clock(self) -> float:
        return self.now_s

    def encode(self, rows: Sequence[list[int]]) -> None:
        tokens = sum(map(len, rows))
        self.now_s += self._pass_s + tokens * 1e-4 * (1 if tokens <= self._cache_tokens else 2)


@pytest.mark.parametrize(("pass_s", "cache_tokens", "budget"), [(5e-3, 200, 128), (5e-3, 9999, 512)])
def test_budget_is_the_machines_own(pass_s: float, cache_tokens: int, budget: int) -> None:
    """Where large passes are slow the measured budget is small, where small ones are it is large."""
    machine = Machine(pass_s, cache_tokens)
    assert measure_budget(machine.encode, default=256, clock=machine.clock) == budget


def test_budget_stays_without_a_reason() -> None:
    """Where the size of a pass makes no difference the default is kept."""
    machine = Machine(pass_s=0.0, cache_tokens=9999)
    assert measure_budget(machine.encode, default=300, clock=machine.clock) == 300
