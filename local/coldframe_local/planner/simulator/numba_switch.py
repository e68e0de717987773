"""One source for two engines: numba compiles the kernel where it is installed, else Python runs it."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
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
    """The same function as machine code, which is kept on disk. Raises ImportError without numba.

    numba would keep it when only what it calls has changed; the sources' digest, which it counts among what a
    function encloses, prevents that.
    """
    from numba import njit

    inner, sources = jitable(function), _digest_of_sources()

    def run(*arguments: Any) -> None:
        _ = sources
        inner(*arguments)

    return njit(cache=True)(run)


def _digest_of_sources() -> str:
    digest = sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
