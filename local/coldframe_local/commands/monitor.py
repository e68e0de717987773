"""`coldframe monitor`: drift and accuracy from the sketches in log lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from coldframe_local.commands.outputs import OutFile, json_option, print_json, require
from coldframe_local.paths import model_dir

if TYPE_CHECKING:
    from pathlib import Path

    from coldframe.monitoring.drift import Slot
    from coldframe.monitoring.reading import Label, SketchLog
    from coldframe.monitoring.reference import Reference
    from coldframe.monitoring.report import Key
    from coldframe.monitoring.work import Work

_LINES = click.Path(exists=True, dir_okay=False, allow_dash=True)
_DRIFTED = 1  # exit status


@click.command()
@click.argument("logs", nargs=-1, type=_LINES, metavar="[LOG]…")
@click.option(
    "--labels",
    type=_LINES,
    metavar="FILE",
    help="True labels as JSON lines; docs/monitoring.md has the fields. Random ones bound the accuracy."
    "  [default: no labels]",
)
@click.option(
    "--feedback",
    metavar="TABLE",
    help="DynamoDB table with labels of POST /v1/feedback, which are read for the time of the sketches."
    "  [default: no table]",
)
@click.option(
    "--baseline",
    multiple=True,
    type=_LINES,
    metavar="LOG",
    help="Log lines of a good time, to compare texts with; may be repeated.  [default: the training's]",
)
@click.option(
    "--slot",
    default="hour",
    show_default=True,
    type=click.Choice(("hour", "day")),
    help="Time after which texts are compared. Choose day where nights bring other texts than days.",
)
@click.option("--emf", is_flag=True, help="Print a line of CloudWatch metrics for each model and head.")
@click.option(
    "--html",
    type=OutFile(),
    help="Page with plots to write, too; needs the extra `plan`.  [default: no page]",
)
@json_option
def monitor(
    logs: tuple[str, ...],
    labels: str | None,
    feedback: str | None,
    baseline: tuple[str, ...],
    slot: Slot,
    emf: bool,
    html: Path | None,
    as_json: bool,
) -> None:
    """Report drift and accuracy from the field `sketch` of the log lines in each LOG, or standard input.

    The reference of each model is in its folder. Exit status 1: the texts of some model have drifted.
    """
    from coldframe.monitoring.report import make_reports, metrics_line, text_lines
    from coldframe.monitoring.work import Work

    if html is not None:
        require("vl_convert", "plan")

    work = Work()
    sketches = _sketches(logs or ("-",), work)
    usual = _sketches(baseline)
    known = _labels(labels) + _feedback(feedback, sketches)
    reports = make_reports(sketches.sketches, known, _references(), usual.sketches, slot)
    if html is not None:
        from coldframe_local.pages.monitor import monitor_page

        html.write_text(monitor_page(reports), encoding="utf-8")
        click.echo(f"{html}: the page", err=True)
    if as_json:
        print_json(reports)
    elif emf:
        for report in reports:
            print_json(metrics_line(report, os.environ.get("COLDFRAME_METRICS_NAMESPACE") or "Coldframe"))
    else:
        for report in reports:
            click.echo("\n".join(text_lines(report)))
        if not reports:
            click.echo("No line has a sketch: there was no traffic, or no environment writes sketches.")
        if energy := work.summary():
            click.echo(energy)
    if unreadable := sketches.unreadable + usual.unreadable:
        click.echo(f"Warning: {unreadable:,} sketches cannot be read, and are left out.", err=True)
    if any(report.drifted for report in reports):
        raise click.exceptions.Exit(_DRIFTED)


def _sketches(paths: tuple[str, ...], work: Work | None = None) -> SketchLog:
    from coldframe.monitoring.reading import read_sketches

    lines = _lines(paths)
    return read_sketches(lines if work is None else work.watch(lines))


def _lines(paths: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        with click.open_file(path, encoding="utf-8", errors="replace") as lines:
            yield from lines


def _labels(path: str | None) -> list[Label]:
    from coldframe.monitoring.reading import read_labels

    if path is None:
        return []
    try:
        return read_labels(_lines((path,)))
    except ValueError as exc:
        raise click.ClickException(f"{path}: {exc}") from exc


def _feedback(table: str | None, log: SketchLog) -> list[Label]:
    import time

    from coldframe.feedback.table import FeedbackTable, TableFails

    if table is None or not log.sketches:
        return []
    import boto3

    feedback = FeedbackTable(table, lambda: boto3.client("dynamodb"), time.time)
    try:
        return list(feedback.labels_for(log.sketches))
    except TableFails as exc:
        raise click.ClickException(f"{table}: {exc}. Check the name, the region and the role.") from exc


def _references() -> dict[Key, Reference]:
    """References of the models that are built here, and of those before them."""
    from coldframe.model.files import PREVIOUS, built_models, model_folder
    from coldframe.monitoring.reference import load_references

    return load_references(
        model_folder(root, name)
        for root in (model_dir() / PREVIOUS, model_dir())
        for name in built_models(root)
    )
