"""float32 values as bytes, for caches, graphs and code without numpy."""

import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Vector: TypeAlias = bytes
"""float32 values in a row, in the machine's byte order."""

VALUE_BYTES = 4
"""Size of one value of a vector."""


def to_vector(values: Iterable[float]) -> Vector:
    """Values, each rounded to float32."""
    return array("f", values).tobytes()


def to_floats(vector: Vector) -> list[float]:
    """The values of a vector, exactly."""
    return array("f", vector).tolist()


def little_endian(content: bytes) -> bytes:
    """Swaps a vector between the machine's byte order and that of protocols; equal on most machines."""
    if sys.byteorder == "little":
        return content
    values = array("f", content)
    values.byteswap()
    return values.tobytes()


def join(vectors: Iterable[Vector]) -> bytes:
    """Vectors one after the other."""
    return b"".join(vectors)


def split(content: bytes, count: int) -> list[Vector]:
    """Splits `count` joined vectors of one size, at least one."""
    size = len(content) // count
    return [content[start : start + size] for start in range(0, len(content), size)]


def weighted_mean(vectors: Sequence[Vector], weights: Sequence[float]) -> Vector:
    """The weighted mean of vectors of one size, scaled to length 1.

    It is computed in float64 and rounded at the end. A mean without a direction is zero.
    """
    sums = [0.0] * (len(vectors[0]) // VALUE_BYTES)
    for vector, weight in zip(vectors, weights, strict=True):
        sums = [total + weight * value for total, value in zip(sums, to_floats(vector), strict=True)]
    length = math.sqrt(math.fsum(value * value for value in sums)) or 1.0
    return to_vector(value / length for value in sums)


def cosine(vector: Vector, other: Sequence[float]) -> float:
    """The product of a vector and of values, both of length 1."""
    return math.fsum(a * b for a, b in zip(to_floats(vector), other, strict=True))


def ranked(values: Sequence[float]) -> list[int]:
    """Positions of the values, largest value first."""
    return sorted(range(len(values)), key=values.__getitem__, reverse=True)
