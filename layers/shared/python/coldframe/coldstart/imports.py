"""Imports of a starting environment, without what takes time and gives nothing."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Nothing that an import makes is garbage: looking for some takes a tenth of a cold start.

    What was made in the block is never looked at again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


@contextmanager
def without_typing_extensions() -> Iterator[None]:
    """msgspec takes `typing_extensions` where it is installed, and otherwise `typing`, which has the same.

    What it imports takes a twentieth of the floor. Whoever imports it after the block gets it.
    """
    is_free = sys.modules.setdefault("typing_extensions", None) is None  # type: ignore[arg-type]
    try:
        yield
    finally:
        if is_free:
            del sys.modules["typing_extensions"]
