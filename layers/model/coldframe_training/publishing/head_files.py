"""Trained heads and centroids as files: an `.npz` where they are kept, weights where they are served."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coldframe.graphs.graph import Tensor
from coldframe.model.files import CENTROIDS, head_file
from coldframe.model.weights import write_weights
from coldframe_training.embeddings.matrices import Arrays

_KINDS = {
    "float32": "f",
    "float64": "d",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
}  # numpy's own letters differ between systems
CENTROIDS_FILE = "centroids.npz"
_MATRICES = ("weight", "projection")  # beginnings of their names; (d, k)


def save_head(folder: Path, name: str, arrays: Arrays) -> None:
    """`<name>.npz` in `folder`, readable without pickle."""
    np.savez(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]


def unpack_head(folder: Path, name: str, bundle: Path) -> None:
    """The weights of a head in `bundle`, as its graph takes them."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
        weights = graph_weights(dict(arrays))
    path = bundle / head_file(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_weights(path, weights)


def unpack_centroids(trained: Path, bundle: Path) -> None:
    """The arrays of `centroids.npz` in `bundle`, as they are served."""
    with np.load(trained / CENTROIDS_FILE, allow_pickle=False) as arrays:
        directions, usual = arrays["directions"].T, arrays["usual"]
    bundle.mkdir(parents=True, exist_ok=True)
    write_weights(bundle / CENTROIDS, {"directions": tensor_of(directions), "usual": tensor_of(usual)})


def graph_weights(arrays: Arrays) -> dict[str, Tensor]:
    """Arrays of a trained head as the inputs of its graph.

    Matrices are turned, so that a product has a row for each result. The first tree of each label becomes
    the label of each tree.
    """
    turned = {name: array.T if name.startswith(_MATRICES) else array for name, array in arrays.items()}
    if (first_tree := turned.pop("first_tree", None)) is not None:
        trees = np.diff(np.append(first_tree, len(arrays["roots"])))
        turned["label"] = np.repeat(np.arange(len(trees)), trees)
    return {name: tensor_of(array) for name, array in turned.items()}


def tensor_of(array: NDArray[Any]) -> Tensor:
    """An array of numpy as what graphs take."""
    return Tensor(_KINDS[array.dtype.name], array.shape, array.tobytes())
