"""Rows are held out by label and by group."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from layers.model.split import hold_out

TABLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), min_size=1, max_size=120)


@given(TABLES, st.integers(0, 9))
def test_every_row_is_on_one_side(rows: list[tuple[int, int]], seed: int) -> None:
    """No row is lost or used twice, and no group is on both sides."""
    groups = [str(group) for _, group in rows]
    kept, held_out = hold_out([label for label, _ in rows], groups, 0.2, seed)
    assert sorted([*kept.tolist(), *held_out.tolist()]) == list(range(len(rows)))
    assert not {groups[row] for row in kept} & {groups[row] for row in held_out}


@given(st.lists(st.integers(5, 60), min_size=2, max_size=12), st.integers(0, 9))
def test_share_of_every_label(counts: list[int], seed: int) -> None:
    """Without groups, a fifth of each label is held out, and at least one row."""
    labels = [label for label, count in enumerate(counts) for _ in range(count)]
    _, held_out = hold_out(labels, [str(row) for row in range(len(labels))], 0.2, seed)
    taken = Counter(labels[row] for row in held_out)
    assert [taken[label] for label in range(len(counts))] == [max(1, round(0.2 * n)) for n in counts]


def test_seed_decides() -> None:
    """One seed gives one split, another seed another one."""
    labels, groups = [0, 1] * 50, [str(row) for row in range(100)]
    first, again, other = (hold_out(labels, groups, 0.2, seed)[1].tolist() for seed in (1, 1, 2))
    assert first == again != other
