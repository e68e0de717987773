"""A trained head as a file: an `.npz` where it is kept, weights for its graph where it is served."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coldframe.graphs.graph import Tensor
from coldframe.model.files import head_file
from coldframe.model.weights import write_weights
from layers.model.matrices import Arrays

_KINDS = {
    "float32": "f",
    "float64": "d",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
}  # numpy's own letters differ between systems
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
