"""Held-out rows that nearly repeat a training row are found by their embeddings."""

import numpy as np

from coldframe_training.embeddings.matrices import find_near_copies


def test_near_copies() -> None:
    """A row counts when it points nearly where a training row points, however long both are."""
    trained_on = np.array([[1, 0, 0], [0, 3, 0]], dtype=np.float32)
    held_out = np.array([[2, 0.1, 0], [1, 1, 0], [0, 1, 0.2], [0, 0, 1], [0, 0, 0]], dtype=np.float32)
    assert find_near_copies(held_out, trained_on).tolist() == [True, False, True, False, False]


def test_many_rows() -> None:
    """Rows are compared in parts, and each finds its copy in whatever part."""
    rows = np.eye(3000, 1500, dtype=np.float32)
    assert find_near_copies(rows, rows[700:]).sum() == 800
