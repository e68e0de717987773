"""`coldframe experiment …`: start, watch, promote and stop an experiment on a deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from coldframe_local.command_group import Group
from coldframe_local.commands.outputs import json_option, print_json

if TYPE_CHECKING:
    from coldframe.experiments.control import Control
    from coldframe.experiments.document import Run

F = TypeVar("F", bound=Callable[..., Any])
_PATIENCE_S = 30.0


def _store_option(command: F) -> F:
    """Adds --store; the command gets `store`, a place."""
    return click.option(
        "--store",
        envvar="COLDFRAME_EXPERIMENTS",
        required=True,
        metavar="PLACE",
        help="DynamoDB table or folder of the deployment's experiment.  [default: COLDFRAME_EXPERIMENTS]",
    )(command)


@click.group(cls=Group)
def experiment() -> None:
    """Compare a second model, head or threshold with the present one on a share of the requests."""


@experiment.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_store_option
@json_option
def start(file: Path, store: str, as_json: bool) -> None:
    """Start the experiment in FILE, a JSON document; docs/experiments.md has its fields."""
    from coldframe.experiments.document import read_experiment

    with _control(store) as control:
        _show(control.start(read_experiment(file.read_bytes())), as_json)


@experiment.command()
@_store_option
@json_option
def status(store: str, as_json: bool) -> None:
    """Show arms, shares and counts, and one sentence about what is known."""
    from coldframe.experiments.report import present_report, text_lines

    with _control(store) as control:
        report = present_report(control)
    if report is None:
        raise click.ClickException("There is no experiment. Run `coldframe experiment start FILE`.")
    if as_json:
        print_json(report)
    else:
        click.echo("\n".join(text_lines(report)))


@experiment.command()
@click.option("--arm", metavar="NAME", help="Arm that answers all requests.  [default: the second of two]")
@_store_option
@json_option
def promote(arm: str | None, store: str, as_json: bool) -> None:
    """Give all requests to an arm, at once and without a criterion."""
    with _control(store) as control:
        _show(control.promote(arm or ""), as_json)


@experiment.command()
@_store_option
@json_option
def stop(store: str, as_json: bool) -> None:
    """Give all requests to the deployment's default model again."""
    with _control(store) as control:
        _show(control.stop(), as_json)


@contextmanager
def _control(store: str) -> Iterator[Control]:
    """The store's commands. An error of theirs ends the program with its text."""
    from coldframe.experiments.control import Control
    from coldframe.experiments.document import BadExperiment
    from coldframe.experiments.stores import StoreFails
    from coldframe.experiments.table import open_store

    try:
        yield Control(open_store(store, _PATIENCE_S))
    except BadExperiment as exc:
        raise click.ClickException(str(exc)) from exc
    except StoreFails as exc:
        raise click.ClickException(f"{store}: {exc}. Check the name, the region and the role.") from exc


def _show(run: Run, as_json: bool) -> None:
    """Prints a change. The key, which assigns subjects, stays in the store."""
    last = run.steps[-1]
    if as_json:
        print_json(
            {"experiment": run.experiment.name, "run": run.run, "state": run.state, "reason": last.reason}
        )
    else:
        click.echo(f"{run.experiment.name} is {run.state}. Environments follow within a minute.")
