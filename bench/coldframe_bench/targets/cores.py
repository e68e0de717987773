"""The last core for the loader, the others for what is measured: neither takes time from the other."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

_ALL = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
_SHARED = _ALL if len(_ALL) > 1 else []
"""Cores to share out; none where there are too few, or where processes cannot be bound to cores."""


def target_cores() -> AbstractContextManager[None]:
    """Processes that are started in this block run on all cores but the last, as long as they live."""
    return _on(_SHARED[:-1])


def loader_core() -> AbstractContextManager[None]:
    """This process runs on the last core, which no target has."""
    return _on(_SHARED[-1:])


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
