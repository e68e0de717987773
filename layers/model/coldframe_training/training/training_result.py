"""The result of a training for programs: `coldframe train --json`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import msgspec

from coldframe.model.files import model_folder, recorded_default
from coldframe_training.report import REPORT_PAGE, Comparison, HeadScore, Report
from coldframe_training.training_data.samples import Task


class RowCounts(msgspec.Struct, frozen=True):
    """Rows of the table and of the file to test with: read = dropped + left_out + train + test.

    dropped: rows with faults. left_out: test rows whose texts are trained on, too.
    train: rows that heads are trained on; choices are made with `validation` of them.
    """

    read: int
    dropped: int
    left_out: int
    train: int
    validation: int
    test: int


class TrainingResult(msgspec.Struct, frozen=True):
    """A model that was written, and its figures on the test rows.

    report: the page; report.json beside it has all figures. is_default: whether the model answers requests
    that name none. heads: `auto` first. warnings: what `coldframe train` warns of in its lines.
    """

    name: str
    version: str
    folder: str
    report: str
    is_default: bool
    rows: RowCounts
    heads: list[HeadScore]
    baseline: HeadScore | None
    comparison: Comparison | None
    warnings: list[str]
    seconds: float


def count_task_rows(task: Task, read: int, dropped: int) -> RowCounts:
    """The rows of a task. read, dropped: rows of its files, and those with faults."""
    train, test = len(task.train.target), len(task.test.target)
    return RowCounts(read, dropped, read - dropped - train - test, train, len(task.validation), test)


def training_result(
    report: Report, models: Path, rows: RowCounts, warnings: Sequence[str], seconds: float
) -> TrainingResult:
    """The result of a training whose model is written to `models`. warnings: of the table."""
    folder = model_folder(models, report.name)
    return TrainingResult(
        name=report.name,
        version=report.version,
        folder=str(folder),
        report=str(folder / REPORT_PAGE),
        is_default=recorded_default(models) == report.name,
        rows=rows,
        heads=report.heads,
        baseline=None if report.baseline is None else report.baseline.score,
        comparison=report.comparison,
        warnings=[*warnings, *report.warnings],
        seconds=round(seconds, 1),
    )


@contextmanager
def lines_aside(as_json: bool) -> Iterator[None]:
    """Send the lines for people to standard error while JSON goes to standard output."""
    if not as_json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def print_result(result: TrainingResult) -> None:
    """Prints the result as one line of JSON."""
    print(msgspec.json.encode(result).decode())
