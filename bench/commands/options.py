"""Parts that commands share: options, where raw files go, and the way a table is shown."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from local.paths import ROOT

if TYPE_CHECKING:
    from bench.records.raw_files import Results

Command = TypeVar("Command", bound=Callable[..., Any])

RESULTS = ROOT / "bench" / "results"
ENVIRONMENTS = click.option(
    "--environments",
    type=click.Path(path_type=Path),
    default=ROOT / ".venv-peers",
    help="Where peers are installed; default: .venv-peers.",
)
SEED = click.option("--seed", default=0, show_default=True, help="Seed for all random choices.")


def out_option(name: str) -> Callable[[Command], Command]:
    """The option of every command that writes a raw file: where."""
    return click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        default=RESULTS / name,
        help=f"Raw file, compressed if it ends in .gz; default: bench/results/{name}.",
    )


def show(table: "Callable[[Results], str]", path: Path) -> None:
    """The table of a raw file, and where that file is."""
    from bench.records.raw_files import read_results

    click.echo(table(read_results(path)))
    click.echo(f"Raw lines: {path}")


def require_bench_libraries() -> None:
    """Says before anything is measured that `make bench` installs what is missing."""
    if missing := [name for name in ("psutil", "scipy", "vl_convert") if find_spec(name) is None]:
        raise click.ClickException(
            f"{missing[0]} is not installed. Run `make bench-setup`, or install bench/requirements.txt."
        )
