"""Rows are held out by their content: by group, and whatever else is in the table."""

import random

from hypothesis import given
from hypothesis import strategies as st

from coldframe_training.training_data.split import hold_out, place_of

TABLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), min_size=1, max_size=120)
COUNTS = st.lists(st.integers(5, 40), min_size=2, max_size=8)
Row = tuple[int, str]


def sides(rows: list[Row], share: float = 0.2) -> tuple[set[str], set[str]]:
    """Groups to train on, and groups held out."""
    kept, held_out = hold_out([label for label, _ in rows], [group for _, group in rows], share, "test")
    return {rows[row][1] for row in kept}, {rows[row][1] for row in held_out}


def table(counts: list[int], seed: int) -> list[Row]:
    """Rows of distinct texts: so many of each label."""
    return [(label, f"{seed} {label} {row}") for label, count in enumerate(counts) for row in range(count)]


def texts_of(label: int, rows: list[Row]) -> list[str]:
    """Texts of one label."""
    return [text for other, text in rows if other == label]


@given(TABLES)
def test_every_row_is_on_one_side(rows: list[tuple[int, int]]) -> None:
    """No row is lost or used twice, no group is on both sides, and every label has a row to train on."""
    labels, groups = [label for label, _ in rows], [str(group) for _, group in rows]
    kept, held_out = hold_out(labels, groups, 0.2, "test")
    assert sorted([*kept.tolist(), *held_out.tolist()]) == list(range(len(rows)))
    assert not {groups[row] for row in kept} & {groups[row] for row in held_out}
    assert {labels[row] for row in kept} == set(labels)


@given(COUNTS, st.integers(0, 1000))
def test_every_label_is_held_out(counts: list[int], seed: int) -> None:
    """Each label has a row on both sides, however rare it is."""
    rows = table(counts, seed)
    labels = {text: label for label, text in rows}
    assert [{labels[text] for text in side} for side in sides(rows)] == [set(range(len(counts)))] * 2


@given(COUNTS, COUNTS, st.integers(0, 1000), st.randoms(use_true_random=False))
def test_growth_keeps_sides(counts: list[int], more: list[int], seed: int, dice: random.Random) -> None:
    """A row that was trained on is never held out when the table grows or is reordered.

    The exception has to be written down: all texts of a label are under the share, and one is trained on.
    """
    older = table(counts, seed)
    grown = older + [row for row in table(more, seed + 1) if row[0] < len(counts)]
    dice.shuffle(grown)
    trained, _ = sides(older)
    _, held_out = sides(grown)
    assert {text for text in trained & held_out if place_of(text, "test") >= 0.2} == set()


@given(COUNTS, st.integers(0, 1000))
def test_larger_share_keeps_what_is_held_out(counts: list[int], seed: int) -> None:
    """What a share holds out, a larger one holds out too, unless a label would have nothing to train on."""
    rows = table(counts, seed)
    small, large = sides(rows, 0.1)[1], sides(rows, 0.3)[1]
    highest = {max(texts_of(label, rows), key=lambda text: place_of(text, "test")) for label, _ in rows}
    assert small <= large | highest


def test_share_of_a_large_table() -> None:
    """About a fifth of many groups is held out, and groups of two uses are independent."""
    groups = [f"group {number}" for number in range(10_000)]
    test, validation = ({g for g in groups if place_of(g, use) < 0.2} for use in ("test", "validation"))
    assert 0.19 < len(test) / len(groups) < 0.21
    assert 0.18 < len(test & validation) / len(test) < 0.22


def test_group_larger_than_its_share() -> None:
    """A group of more rows than the share is trained on, whatever its name."""
    rows = [(row % 2, "large") for row in range(50)] + [(row % 2, f"small {row}") for row in range(50)]
    assert "large" in sides(rows)[0]
