"""Parts that commands share: options, where raw files go, and the way a table is shown."""

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from coldframe_local.paths import ROOT, model_dir

if TYPE_CHECKING:
    from coldframe_bench.records.raw_files import Results

Command = TypeVar("Command", bound=Callable[..., Any])
Table = Callable[["Results"], str]

RESULTS = ROOT / "bench" / "results"
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
SEED = click.option("--seed", default=0, show_default=True, help="Seed for all random choices.")
ENVIRONMENTS = click.option(
    "--environments",
    type=click.Path(path_type=Path),
    default=ROOT / ".venv-peers",
    help="Where peers are installed; default: .venv-peers.",
)


def number(
    name: str, default: Any, least: float, most: float | None = None, **more: Any
) -> Callable[[Command], Command]:
    """An option: a decimal number where the default is one, otherwise a whole number."""
    kind: Any = click.FloatRange if isinstance(default, float) else click.IntRange
    more |= {"default": default, "show_default": default is not None}
    return click.option(name, type=kind(least, most), **more)


def out_option(name: str) -> Callable[[Command], Command]:
    """The option of every command that writes a file: where."""
    return click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        default=RESULTS / name,
        help=f"File to write; raw lines are compressed if it ends in .gz. Default: bench/results/{name}.",
    )


def recorded(name: str) -> Callable[[Callable[..., Table]], Callable[..., None]]:
    """A command that writes a raw file. It gets the file as `out`, and returns the maker of its table."""

    def decorate(measure: Callable[..., Table]) -> Callable[..., None]:
        @out_option(name)
        @SEED
        @wraps(measure)
        def command(out: Path, **options: Any) -> None:
            require_bench_libraries()
            show(measure(model_dir=model_dir(), out=out, **options), out)

        return command

    return decorate


def show(table: Table, path: Path) -> None:
    """The table of a raw file, and where that file is."""
    from coldframe_bench.records.raw_files import read_results

    click.echo(table(read_results(path)))
    click.echo(f"Raw lines: {path}")


def require_bench_libraries() -> None:
    """Says before anything is measured that `make bench` installs what is missing."""
    if missing := [name for name in ("psutil", "scipy", "vl_convert") if find_spec(name) is None]:
        raise click.ClickException(
            f"{missing[0]} is not installed. Run `make bench-setup`, or install bench/requirements.txt."
        )
