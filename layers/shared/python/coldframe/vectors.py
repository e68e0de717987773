"""float32 values as bytes: what a cache keeps, and what is there before numpy is."""

from array import array
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Vector: TypeAlias = bytes
"""float32 values side by side, in the machine's byte order."""


def to_vector(values: Iterable[float]) -> Vector:
    """Values, each rounded to float32."""
    return array("f", values).tobytes()


def to_floats(vector: Vector) -> list[float]:
    """The values of a vector, exactly."""
    return array("f", vector).tolist()


def ranked(values: Sequence[float]) -> list[int]:
    """Positions of the values, that of the largest first."""
    return sorted(range(len(values)), key=values.__getitem__, reverse=True)
