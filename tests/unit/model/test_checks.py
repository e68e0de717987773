"""Faults of a table are found all at once, and said by row numbers and counts."""

import pytest

from layers.model.checks import check_table
from layers.model.table import Table, TableFault


def table(*rows: tuple[str, str]) -> Table:
    """A table of (text, label) rows."""
    return Table([text for text, _ in rows], [label for _, label in rows], None)


GOOD = [(f"text {number} of {label}", label) for label in "AB" for number in range(5)]


def test_table_without_faults() -> None:
    """A good table passes whole; its texts are in their normal form."""
    checked = check_table(table(*GOOD[:-1], ("  text \n 4  of B ", "B")))
    assert checked.table == table(*GOOD)
    assert checked.numbers == list(range(1, 11))
    assert checked.dropped == []


FAULTY = [
    ("", "A"),
    (" \n", "B"),
    ("secret", ""),
    ("one", "A"),
    ("one ", "B"),
    ("\ud800", "A"),
    ("rare", "C"),
]


def test_all_faults_at_once() -> None:
    """Every fault is in one message, with its rows; no text is."""
    with pytest.raises(TableFault) as raised:
        check_table(table(*GOOD, *FAULTY))
    assert str(raised.value).splitlines()[1:-1] == [
        "  without a text: 2 rows (11, 12)",
        "  without a label: 1 row (13)",
        "  with a text that is not Unicode: 1 row (16)",
        "  with one text under several labels: 2 rows (14, 15)",
        "  of 1 labels with fewer than 5 different texts: 1 row (17)",
    ]
    assert "secret" not in str(raised.value)
    assert "--drop" in str(raised.value)


def test_faulty_rows_dropped() -> None:
    """Faulty rows can be left out; the rest keeps the numbers that it has in the file."""
    checked = check_table(table(*FAULTY, *GOOD), drop=True)
    assert checked.table == table(*GOOD)
    assert checked.numbers == list(range(8, 18))
    assert sum(len(finding.rows) for finding in checked.dropped) == len(FAULTY)


def test_copies_do_not_count() -> None:
    """Five copies of one text are one text: too few for a label."""
    with pytest.raises(TableFault, match=r"fewer than 5 different texts: 5 rows"):
        check_table(table(*GOOD, *[("same", "C")] * 5))


@pytest.mark.parametrize("drop", [False, True])
def test_single_class(drop: bool) -> None:
    """One label alone is refused."""
    with pytest.raises(TableFault, match=r"1 label\. Expected two or more"):
        check_table(table(*GOOD[:5]), drop)


def test_too_many_labels() -> None:
    """More than a thousand labels are refused with their number."""
    rows = [(f"{label} {number}", str(label)) for label in range(1001) for number in range(5)]
    with pytest.raises(TableFault, match=r"1,001 labels\. Expected at most 1,000"):
        check_table(table(*rows))


def test_test_rows_may_be_few() -> None:
    """Rows to test with may be of one label, and one of it."""
    assert check_table(table(("one", "A")), is_test=True).table == table(("one", "A"))
