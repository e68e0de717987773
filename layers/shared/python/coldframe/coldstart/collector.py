"""The garbage collector, out of the way while an environment starts."""

import gc
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
