"""The last core for the loader, the others for what is measured: neither takes time from the other."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def target_cores() -> Iterator[None]:
    """Processes that are started in this block run on all cores but the last, as long as they live.

    With a single core, or on a system that cannot bind processes to cores, nothing changes.
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
