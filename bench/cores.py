"""Cores of its own for the loader, so that it does not take those of what it measures."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def target_cores() -> Iterator[list[int]]:
    """Processes started within run on all cores but the last; this one goes to the last when it ends.

    Yields the target's cores; none where there is only one core, or no way to choose.
    """
    if not hasattr(os, "sched_setaffinity") or len(usable := sorted(os.sched_getaffinity(0))) < 2:
        yield []
        return
    os.sched_setaffinity(0, usable[:-1])
    try:
        yield usable[:-1]
    finally:
        os.sched_setaffinity(0, usable[-1:])


def all_cores() -> None:
    """Ends what `target_cores` began."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
