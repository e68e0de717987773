"""The centroids of the labels, and how near to them the validation rows are: `centroids.npz`."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coldframe.model.heads import Centroids
from coldframe_training.embeddings.matrices import Embeddings, to_vectors
from coldframe_training.out_of_distribution.strangeness import thin
from coldframe_training.publishing.head_files import CENTROIDS_FILE, tensor_of
from coldframe_training.training_data.samples import Embedded, Rows, stack_forms


def train_centroids(train: Embedded, fit: Rows, validation: Rows, folder: Path) -> Centroids:
    """Writes `centroids.npz` to `folder`: centroids of all rows of `train`.

    The validation rows are held against centroids that they have no part in. Otherwise they would look more
    usual than any other text can.
    """
    usual = thin(held_out_strangeness(train, fit, validation)).astype(np.float32)
    arrays = {"directions": directions(*stack_forms(train)), "usual": usual}
    np.savez(folder / CENTROIDS_FILE, **arrays)  # type: ignore[arg-type]
    return _centroids(**arrays)


def held_out_strangeness(train: Embedded, fit: Rows, validation: Rows) -> NDArray[np.float64]:
    """Strangeness of the validation rows to the centroids of the rows `fit`, (n,)."""
    centroids = _centroids(directions(*stack_forms(train, fit)), np.zeros(1, dtype=np.float32))
    return np.array(centroids.strangeness(to_vectors(train.as_sent[validation])))


def _centroids(directions: NDArray[np.float32], usual: NDArray[np.float32]) -> Centroids:
    return Centroids(tensor_of(directions.T), tensor_of(usual))


def directions(embeddings: Embeddings, target: NDArray[np.int64]) -> NDArray[np.float32]:
    """The mean embedding of each class, as columns of length 1: (d, k), float32.

    target: class of each row, (n,): all of 0 to k - 1, each at least once.
    """
    sums = np.zeros((int(target.max()) + 1, embeddings.shape[1]))
    np.add.at(sums, target, embeddings)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return (sums / np.where(lengths == 0, 1, lengths)).T.astype(np.float32, order="C")
