"""Feedback beside a table: what is trained on, what is judged with, and what is left out."""

import json
from pathlib import Path

import pytest

from coldframe.feedback.rows import FeedbackRow
from coldframe_training.training_data.checks import Checked, check_table, write_faults
from coldframe_training.training_data.feedback import Feedback, read_feedback, usable_feedback
from coldframe_training.training_data.samples import NO_FOLD
from coldframe_training.training_data.table import Table, TableFault
from coldframe_training.training_data.table_task import task_of

MODEL = frozenset({"tickets"})


def checked(rows: int = 60) -> Checked:
    """A table with two labels."""
    return check_table(
        Table([f"text {row}" for row in range(rows)], ["ab"[row % 2] for row in range(rows)], None)
    )


def usable(*rows: FeedbackRow) -> Feedback:
    """What can be used of these rows beside the table."""
    return usable_feedback(rows, [checked().table], MODEL)


def complaint(text: str, label: str = "a", model: str = "tickets") -> FeedbackRow:
    """A row that chance did not choose."""
    return FeedbackRow(text, label, "complaint", model)


def random_row(text: str, label: str = "a") -> FeedbackRow:
    """A row that chance chose."""
    return FeedbackRow(text, label, "random", "tickets")


def test_rows_are_kept_apart_by_how_they_were_chosen() -> None:
    """Random rows and complaints are two tables; numbers are those of the file."""
    feedback = usable(complaint("one"), random_row("two"), random_row("  three\n"))
    assert feedback.complaints.texts == ["one"]
    assert (feedback.random.texts, feedback.numbers) == (["two", "three"], [2, 3])
    assert feedback.left_out == []


def test_every_row_is_used_or_left_out_for_a_reason() -> None:
    """Each kind of bad row is named with its number, and no text is in the reasons."""
    rows = [
        complaint("text 0", "b"),
        complaint("text 1", "b"),
        complaint("new", "z"),
        complaint(" "),
        complaint("bad \ud800"),
        complaint("twice"),
        complaint("twice"),
        complaint("both", "a"),
        complaint("both", "b"),
        complaint("elsewhere", model="spam"),
        complaint("good"),
    ]
    feedback = usable(*rows)
    assert [str(finding) for finding in feedback.left_out] == [
        "of another model: 1 row (10)",
        "without a text: 2 rows (4, 5)",
        "with a label that the table does not have: 1 row (3)",
        "whose text has another label in the table: 1 row (1)",
        "whose text is in the table already: 1 row (2)",
        "with one text under several labels: 2 rows (8, 9)",
        "that repeat another row: 1 row (7)",
    ]
    assert feedback.complaints.texts == ["twice", "good"]
    assert (feedback.read, feedback.used) == (len(rows), 2)


def test_a_row_that_chance_drew_too_counts_as_random() -> None:
    """Of equal rows the random one stays."""
    feedback = usable(complaint("same"), random_row("same"))
    assert (feedback.random.texts, feedback.complaints.texts) == (["same"], [])


def test_feedback_of_other_models_alone_is_an_error() -> None:
    """The message names these models, and how to use their rows."""
    with pytest.raises(TableFault, match=r"other models: spam\. .*--feedback-models"):
        usable(complaint("one", model="spam"))


def test_complaints_are_trained_on_and_never_judged_with() -> None:
    """With complaints, the rows to judge and to choose with are the same as without, and so are the folds."""
    complaints = usable(
        *(complaint(f"complaint {number}", "ab"[number % 2]) for number in range(40))
    ).complaints
    plain = task_of(checked(), None, 0.2).task
    task = task_of(checked(), None, 0.2, complaints).task
    assert task.test.forms == plain.test.forms
    assert task.validation.tolist() == plain.validation.tolist()
    texts = task.train.forms["text"]
    assert {texts[row] for row in task.fit} == {plain.train.forms["text"][row] for row in plain.fit} | set(
        complaints.texts
    )
    assert task.folds is not None
    assert (task.folds == NO_FOLD).sum() == 40
    assert not {texts[row] for row in (task.folds != NO_FOLD).nonzero()[0]} & set(complaints.texts)


def test_random_rows_have_their_own_side() -> None:
    """A random row is judged with or trained on by its text alone, and no row of the table moves."""
    feedback = usable(*(random_row(f"drawn {number}", "ab"[number % 2]) for number in range(100)))
    plain, joined = task_of(checked(), None, 0.2), task_of(feedback.join(checked()), None, 0.2)
    test_texts = joined.task.test.forms["text"]
    drawn = [text for text in test_texts if text.startswith("drawn")]
    assert 8 <= len(drawn) <= 35
    assert set(plain.task.test.forms["text"]) >= set(test_texts) - set(drawn)
    numbers = dict(zip(test_texts, joined.numbers, strict=True))
    assert numbers[drawn[0]] == 60 + int(drawn[0].split()[1]) + 1


def test_a_text_to_judge_with_is_never_trained_on() -> None:
    """Feedback about a text of the test file is left out, so that the file keeps all its rows."""
    test = check_table(Table(["judged"], ["a"], None), is_test=True)
    feedback = usable_feedback([complaint("judged")], [checked().table, test.table], MODEL)
    assert feedback.used == 0
    assert len(task_of(checked(), test, 0.2, feedback.complaints).task.test.target) == 1


def test_a_file_of_rows(tmp_path: Path) -> None:
    """Text and label are enough; lines that are no rows are an error with their numbers."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": "t", "label": "a"}) + "\n")
    assert read_feedback(path) == [FeedbackRow("t", "a")]
    path.write_text('{"text": "t"}\n{"text": "t", "label": "a"}\nsecret\n')
    with pytest.raises(TableFault, match=r"2 rows \(1, 3\)") as refused:
        read_feedback(path)
    assert "secret" not in str(refused.value)
    write_faults(tmp_path / "faults.csv", "rows", usable(complaint("new", "z")).left_out)
    assert "rows,1,with a label that the table does not have" in (tmp_path / "faults.csv").read_text()
