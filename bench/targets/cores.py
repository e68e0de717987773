"""Cores of its own for the loader, so that it does not take those of what it measures."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def target_cores() -> Iterator[None]:
    """What is started within runs on all cores but the last, for as long as it lives.

    Nothing changes where there is only one core, or no way to choose.
    """
    with _on(_usable()[:-1]):
        yield


@contextmanager
def loader_core() -> Iterator[None]:
    """This process runs on the last core, which no target has."""
    with _on(_usable()[-1:]):
        yield


_ALL = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _usable() -> list[int]:
    """Cores to share out; none where there are too few."""
    return _ALL if len(_ALL) > 1 else []


@contextmanager
def _on(cores: list[int]) -> Iterator[None]:
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
