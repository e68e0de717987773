"""Progress of long work: a bar on a terminal, one line anywhere else."""

import sys
from collections.abc import Iterable
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")


def progress(items: Iterable[T], title: str, unit: str) -> "tqdm[T]":
    """A bar over items that can be counted."""
    bar = tqdm(items, desc=title, unit=unit, disable=None)
    if bar.disable:
        print(f"{title}: {len(bar):,} {unit}s", file=sys.stderr, flush=True)
    return bar


def say(line: str) -> None:
    """A line of standard output, above a bar if there is one."""
    tqdm.write(line)
