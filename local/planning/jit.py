"""One source for two engines: numba compiles the kernel where it is installed, else Python runs it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

HAS_NUMBA = find_spec("numba") is not None


def jitable(function: F) -> F:
    """Stays a plain function, and may be called by what numba compiles."""
    if not HAS_NUMBA:
        return function
    from numba.extending import register_jitable

    return register_jitable(function)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function as machine code, which is kept on disk. Raises ImportError without numba."""
    from numba import njit

    return njit(cache=True)(function)
