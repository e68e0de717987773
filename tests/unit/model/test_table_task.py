"""A checked table becomes rows to train on, rows for choices and rows to test with."""

import pytest

from coldframe_training.training_data.checks import Checked, check_table
from coldframe_training.training_data.table import Table, TableFault
from coldframe_training.training_data.table_task import task_of

ROWS = [(f"text {number} of {label}", label) for label in "CAB" for number in range(20)]


def checked(*rows: tuple[str, str], is_test: bool = False) -> Checked:
    """A table of (text, label) rows, checked."""
    return check_table(Table([text for text, _ in rows], [label for _, label in rows], None), False, is_test)


def test_labels_are_sorted() -> None:
    """Classes are positions in the sorted labels."""
    task = task_of(checked(*ROWS), None, 0.2).task
    assert task.labels == ["A", "B", "C"]
    assert all(
        text.endswith(task.labels[place])
        for samples in (task.train, task.test)
        for text, place in zip(samples.forms["text"], samples.target, strict=True)
    )


def test_no_text_is_on_two_sides() -> None:
    """Copies of a text are trained on or tested with, not both; nor are they used to choose."""
    task = task_of(checked(*ROWS, *ROWS, *ROWS), None, 0.2).task
    texts = task.train.forms["text"]
    assert not set(texts) & set(task.test.forms["text"])
    assert not {texts[row] for row in task.fit} & {texts[row] for row in task.validation}


def test_copies_in_a_test_file() -> None:
    """Rows of a test file whose texts are trained on are left out, and counted by their numbers."""
    test = checked(("new text of A", "A"), ROWS[3], ROWS[4], is_test=True)
    task, notes, numbers = task_of(checked(*ROWS), test, 0.2)
    assert task.test.forms["text"] == ["new text of A"]
    assert numbers == [1]
    assert "2 rows (2, 3)" in notes[0]
    assert "2 of 3 labels have no test row" in notes[1]


def test_test_file_with_other_labels() -> None:
    """Labels that are not trained on are an error with the numbers of their rows."""
    with pytest.raises(TableFault, match=r"labels that the table does not have: 1 row \(1\)"):
        task_of(checked(*ROWS), checked(("new", "D"), is_test=True), 0.2)


def test_test_file_of_copies_only() -> None:
    """A test file without any other text is an error."""
    with pytest.raises(TableFault, match="No row is left to test with"):
        task_of(checked(*ROWS), checked(ROWS[0], is_test=True), 0.2)


def test_groups_too_large_to_choose_with() -> None:
    """Where every group is larger than a share, the error says that groups are too large."""
    texts, labels = [text for text, _ in ROWS], [label for _, label in ROWS]
    table = check_table(Table(texts, labels, labels))
    with pytest.raises(TableFault, match="smaller groups"):
        task_of(table, None, 0.2)
