"""Faults of a table are found all at once, and said by row numbers and counts."""

from pathlib import Path

import pytest

from coldframe_training.training_data.checks import check_table, spellings_of, write_faults
from coldframe_training.training_data.table import Table, TableFault


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
        "  with one text under several labels: 2 rows (14 and 15)",
        "  of 1 label with fewer than 5 different texts ('C'): 1 row (17)",
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
    with pytest.raises(TableFault, match=r"fewer than 5 different texts \('C'\): 5 rows"):
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


def test_labels_that_differ_by_case() -> None:
    """Labels that differ by case are named, and made one where it is asked for; white space never counts."""
    rows = [*GOOD, *[(f"more {number}", " a ") for number in range(5)], ("another", "A\t")]
    noted = check_table(table(*rows))
    assert set(noted.table.labels) == {"A", "B", "a"}
    assert noted.notes == ["2 labels differ by case alone ('A', 'a'). Make them one with --fold-labels."]
    folded = check_table(table(*rows), spellings=spellings_of(table(*rows).labels))
    assert (set(folded.table.labels), folded.notes) == ({"A", "B"}, [])


def test_most_frequent_spelling() -> None:
    """The spelling that most rows have is the label; of equals, the first by name."""
    assert spellings_of(["billing", "Billing ", "Billing", "x", "X"]) == {"billing": "Billing", "x": "X"}


def test_texts_in_the_column_of_labels() -> None:
    """Rare labels as long as texts are not named: the columns may have been taken for each other."""
    text = "my card was charged twice for a parcel that never came"
    with pytest.raises(TableFault) as raised:
        check_table(table(*GOOD, ("queue", text)))
    assert text not in str(raised.value)


def test_all_faulty_rows_in_a_file(tmp_path: Path) -> None:
    """Every faulty row is in a file, with its fault and the rows in conflict, and without a text."""
    rows = [*GOOD, *[(f"same {number}", label) for number in range(9) for label in "AB"], ("secret", "")]
    path = tmp_path / "faults.csv"
    with pytest.raises(TableFault):
        check_table(table(*rows), report=lambda found: write_faults(path, "t.csv", found))
    lines = path.read_text().splitlines()
    assert lines[:3] == [
        "table,row,fault,in conflict with",
        "t.csv,29,without a label,",
        "t.csv,11,with one text under several labels,12",
    ]
    assert len(lines) == 20
    assert "secret" not in path.read_text()
