"""Output of commands: files that are checked before the work, JSON, and progress."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click

from coldframe_local.paths import IS_CHECKOUT

_FROM_WHEEL = (
    "Install the extra {extra!r} of the wheel that Coldframe came from: pip install './FILE.whl[{extra}]'"
)
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class OutFile(click.Path):
    """A file to write, in a folder that is there: refused before an hour of work, not after it."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Fails where no file can be written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not os.access(path.parent, os.W_OK):
            self.fail(f"{path.parent} is not a folder to write to. Make it, or choose another.", param, ctx)
        return path


def json_option(command: F) -> F:
    """Adds --json; the command gets `as_json`, and hands its results to `print_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")(command)


def print_json(results: object) -> None:
    """Prints results as one line of JSON: structs, dataclasses, and what msgspec encodes besides."""
    import msgspec

    click.echo(msgspec.json.encode(results))


def require(module: str, extra: str) -> None:
    """Raises click.ClickException when a part that is installed apart is missing."""
    if find_spec(module) is None:
        install = f"pip install --editable '.[{extra}]'"
        where = f"Run in the checkout: {install}" if IS_CHECKOUT else _FROM_WHEEL.format(extra=extra)
        raise click.ClickException(f"{module} is not installed. {where}")


def with_progress(items: Iterable[T], total: int, unit: str, title: str) -> Iterable[T]:
    """The items, with their progress on standard error."""
    from coldframe.progress import Progress

    # A terminal of unknown width has 0 columns, for which tqdm would print nothing.
    columns = shutil.get_terminal_size().columns
    return Progress(items, total=total, unit=unit, desc=title, ncols=columns, leave=False)
