"""A checked table as a task: what is trained on, what choices are made with, what is judged with."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coldframe_training.training_data.checks import Checked
from coldframe_training.training_data.feedback import append_rows
from coldframe_training.training_data.samples import NO_FOLD, Rows, Samples, Task
from coldframe_training.training_data.split import hold_out, place_of
from coldframe_training.training_data.table import Table, TableFault, count_rows

FORM = "text"  # a table has its texts in one form
_VALIDATION_SHARE = 0.2
_FOLDS = 5


class TableTask(NamedTuple):
    """A task, and what a user should know about how it came about. Notes hold no texts.

    numbers: of the test rows in their file, from 1.
    """

    task: Task
    notes: list[str]
    numbers: list[int]


def task_of(
    training: Checked, test: Checked | None, test_share: float, further: Table | None = None
) -> TableTask:
    """The task of a table. test: rows to judge with; without, about `test_share` of the table is held out.

    further: rows that are trained on only, with labels of the table and texts that neither table has; no
    choice and no figure rests on them.
    A row's side follows from its group, or else from its text: it stays the same when the table grows.
    Raises TableFault when rows to judge with have labels that are not trained on.
    """
    table, notes = training.table, [f"left out: {finding}" for finding in training.dropped]
    labels = sorted(set(table.labels))
    if test is None:
        train_rows, test_rows = hold_out(_classes(table, labels), _groups(table), test_share, "test")
        train, judged = table.take(train_rows.tolist()), table.take(test_rows.tolist())
        numbers = [training.numbers[row] for row in test_rows]
    else:
        train, judged, numbers = table, test.table, test.numbers
        _check_known(judged, labels, numbers)
    rows, copies = without_copies(judged, train, numbers)
    judged, numbers = judged.take(rows), [numbers[row] for row in rows]
    if copies:
        notes.append(
            f"left out of the test rows, because their texts are trained on too: {count_rows(copies)}"
        )
    if not judged.texts:
        raise TableFault(
            "No row is left to test with. Expected --test FILE with other texts, or smaller groups."
        )
    classes = _classes(train, labels)
    fit, validation = hold_out(classes, _groups(train), _VALIDATION_SHARE, "validation")
    validation = _without_copies_of(train, fit, validation)
    if not len(validation):
        raise TableFault("No row is left to make choices with. Expected smaller groups, or more rows.")
    if untested := sorted(set(labels) - set(judged.labels)):
        notes.append(f"{len(untested):,} of {len(labels):,} labels have no test row")
    folds = np.array([int(_FOLDS * place_of(group, "fold")) for group in _groups(train)], dtype=np.int64)
    if further is not None:
        train, fit, folds = _train_on(further, train, fit, folds)
    task = Task(labels, _samples(train, labels), fit, validation, _samples(judged, labels), folds)
    return TableTask(task, notes, numbers)


def _train_on(further: Table, train: Table, fit: Rows, folds: Rows) -> tuple[Table, Rows, Rows]:
    """Training rows, rows to fit and folds with further rows, which belong to no fold."""
    added = np.arange(len(train.texts), len(train.texts) + len(further.texts), dtype=np.int64)
    return append_rows(train, further), np.concatenate([fit, added]), np.append(folds, [NO_FOLD] * len(added))


def without_copies(judged: Table, train: Table, numbers: Sequence[int]) -> tuple[list[int], list[int]]:
    """Positions of the rows of `judged` whose texts are not in `train`, and the numbers of the others."""
    texts = set(train.texts)
    rows = [row for row, text in enumerate(judged.texts) if text not in texts]
    return rows, [numbers[row] for row, text in enumerate(judged.texts) if text in texts]


def _without_copies_of(table: Table, fit: Rows, validation: Rows) -> Rows:
    texts = {table.texts[row] for row in fit}
    return np.array([row for row in validation if table.texts[row] not in texts], dtype=np.int64)


def _check_known(judged: Table, labels: Sequence[str], numbers: Sequence[int]) -> None:
    labels_of_training = set(labels)
    unknown = [numbers[row] for row, label in enumerate(judged.labels) if label not in labels_of_training]
    if unknown:
        raise TableFault(f"The test file has labels that the table does not have: {count_rows(unknown)}.")


def _classes(table: Table, labels: Sequence[str]) -> list[int]:
    places = {label: place for place, label in enumerate(labels)}
    return [places[label] for label in table.labels]


def _groups(table: Table) -> list[str]:
    """Without a group of its own, a row is grouped with the copies of its text."""
    names = table.groups or table.texts
    return [name or text for name, text in zip(names, table.texts, strict=True)]


def _samples(table: Table, labels: Sequence[str]) -> Samples:
    return Samples({FORM: table.texts}, np.array(_classes(table, labels), dtype=np.int64))
