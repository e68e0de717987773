"""Embeddings and probabilities as matrices of numpy, with which training computes."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coldframe.model.heads import Head
from coldframe.vectors import Vector

Embeddings: TypeAlias = NDArray[np.float32]
"""float32 (n, d), every row of length 1."""

Probabilities: TypeAlias = NDArray[np.float32]
"""float32 (n, k), every row sums to 1."""

Arrays: TypeAlias = dict[str, NDArray[Any]]
"""The weights of a head or of centroids, by name."""

LEAST_COSINE = 0.95
_ROWS = 1024  # compared at once


def to_matrix(vectors: Sequence[Vector]) -> NDArray[np.float32]:
    """float32 (n, d) of n vectors of d values each."""
    return np.frombuffer(b"".join(vectors), dtype=np.float32).reshape(len(vectors), -1 if vectors else 0)


def to_vectors(matrix: NDArray[np.floating]) -> list[Vector]:
    """The rows of a matrix, each rounded to float32."""
    return [row.tobytes() for row in matrix.astype(np.float32, copy=False)]


def predict_rows(head: Head, embeddings: Embeddings) -> Probabilities:
    """Probabilities (n, k) by a served head for embeddings (n, d)."""
    return to_matrix(head.predict(to_vectors(embeddings)))


def find_near_copies(held_out: Embeddings, trained_on: Embeddings) -> NDArray[np.bool_]:
    """Marks held-out rows (n, d) that have a training row (m, d) at a cosine of 0.95 or more: (n,).

    A model looks better on near copies than on new texts.
    """
    rows, others = _directions(held_out), _directions(trained_on)
    parts = [
        (rows[start : start + _ROWS] @ others.T).max(axis=1) >= LEAST_COSINE
        for start in range(0, len(rows), _ROWS)
    ]
    return np.concatenate(parts)


def _directions(embeddings: Embeddings) -> Embeddings:
    """Embeddings of length 1; nought, which has no direction, stays nought."""
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    return (embeddings / np.where(lengths == 0, 1, lengths)).astype(np.float32)
