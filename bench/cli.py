"""`coldframe bench …`: nothing is imported before it is needed."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from local.paths import ROOT, model_dir

Command = TypeVar("Command", bound=Callable[..., Any])

RESULTS = ROOT / "bench" / "results"


@click.group()
def bench() -> None:
    """Measure, against a floor taken in the same run."""


def _out(name: str) -> Callable[[Command], Command]:
    """The option of every measurement: where its raw lines go."""
    return click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        default=RESULTS / name,
        help=f"Raw file, compressed if it ends in .gz; default: bench/results/{name}.",
    )


_SEED = click.option("--seed", default=0, show_default=True, help="Of all that is drawn by chance.")


@bench.command()
@click.option(
    "--samples",
    default=None,
    type=click.IntRange(3, 10_000),
    help="Fresh processes of each kind; default: 30, with --check 15.",
)
@click.option("--check", is_flag=True, help="Measure only what has a budget; fail when one is exceeded.")
@_out("cold.jsonl")
@_SEED
def cold(samples: int | None, check: bool, out: Path, seed: int) -> None:
    """Cold starts: fresh processes to their first answer, beside an import floor."""
    from bench.cold import ColdOptions, run

    run(ColdOptions(model_dir(), samples or (15 if check else 30), seed, out, checked_only=check))
    from bench.budgets import load_budgets, spent
    from bench.records import read_results
    from bench.tables import budget_table, cold_table

    results, budgets = read_results(out), load_budgets()
    click.echo(cold_table(results, budgets))
    rows = spent(results, budgets)
    click.echo(budget_table(rows))
    click.echo(f"Raw lines: {out}")
    exceeded = [row for row in rows if row.exceeded]
    for row in exceeded:
        click.echo(f"Over budget: {row}", err=True)
    if check and exceeded:
        sys.exit(1)
