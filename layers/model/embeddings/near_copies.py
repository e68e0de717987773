"""Held-out rows that nearly repeat a training row: a model looks better on them than on new texts."""

import numpy as np
from numpy.typing import NDArray

from layers.model.embeddings.matrices import Embeddings

LEAST_COSINE = 0.95
_ROWS = 1024  # compared at once


def find_near_copies(held_out: Embeddings, trained_on: Embeddings) -> NDArray[np.bool_]:
    """Mark held-out rows (n, d) that have a training row (m, d) at a cosine of 0.95 or more: (n,)."""
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
