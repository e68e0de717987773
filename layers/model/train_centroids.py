"""The centroids of the labels, and how near to them the validation rows are: `centroids.npz`."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coldframe.model.centroids import Centroids
from coldframe.model.encoder import Embeddings
from coldframe.model.files import CENTROIDS
from layers.model.samples import Embedded, Rows, stack_forms
from layers.model.usual import thin

_ARRAYS = ("directions", "usual")


def train_centroids(train: Embedded, fit: Rows, validation: Rows, folder: Path) -> Centroids:
    """Writes `centroids.npz` to `folder`: centroids of all rows of `train`.

    The validation rows are held against centroids that they have no part in. Otherwise they would look more
    usual than any other text can.
    """
    nothing = np.zeros(1, dtype=np.float32)
    held_out = Centroids({"directions": directions(*stack_forms(train, fit)), "usual": nothing})
    usual = thin(held_out.strangeness(train.as_sent[validation])).astype(np.float32)
    arrays = {"directions": directions(*stack_forms(train)), "usual": usual}
    np.savez(folder / f"{CENTROIDS}.npz", **arrays)  # type: ignore[arg-type]
    return Centroids(arrays)


def directions(embeddings: Embeddings, target: NDArray[np.int64]) -> NDArray[np.float32]:
    """The mean embedding of each class, as columns of length 1: (d, k), float32.

    target: class of each row, (n,): all of 0 to k - 1, each at least once.
    """
    sums = np.zeros((int(target.max()) + 1, embeddings.shape[1]))
    np.add.at(sums, target, embeddings)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return (sums / np.where(lengths == 0, 1, lengths)).T.astype(np.float32, order="C")


def unpack_centroids(trained: Path, bundle: Path) -> None:
    """The arrays of `centroids.npz` as files of their own in `bundle`, from where they are served."""
    target = bundle / CENTROIDS
    target.mkdir(parents=True)
    with np.load(trained / f"{CENTROIDS}.npz", allow_pickle=False) as arrays:
        for name in _ARRAYS:
            np.save(target / f"{name}.npy", arrays[name], allow_pickle=False)
