"""Embeddings to class probabilities: heads, each a graph over weights of its own.

The arithmetic is that of scikit-learn and PyTorch at prediction time. `layers/model` writes the graphs and
weights, and its training compares both.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from coldframe.errors import BundleCorrupt
from coldframe.graphs.graph import Graph, GraphError, GraphFile, Kind, Tensor
from coldframe.graphs.runtime import open_graph
from coldframe.model.files import REBUILD, head_file
from coldframe.model.weights import read_weights
from coldframe.vectors import VALUE_BYTES, Vector, join, split

GRAPHS = Path(__file__).parent.parent / "graphs"

_TREES = {"projection", "roots", "feature", "threshold", "right", "leaf"}
_WEIGHTS = {
    "logreg": {"weight", "bias"},
    "rf": _TREES,
    "hgb": _TREES | {"baseline", "label"},
    "mlp": {"weight_1", "bias_1", "weight_2", "bias_2"},
}
"""Arrays of each head."""

_ROWS = 64  # texts of one run: the trees' arrays stay in the caches


class Head(Protocol):
    """Turns embeddings (d,) into probabilities (k,), each text independently."""

    def predict(self, embeddings: Sequence[Vector]) -> list[Vector]: ...


class GraphHead:
    """A head as a graph. Safe for threads. A text has the same answer, to the bit, alone and among others."""

    def __init__(self, name: str, weights: Mapping[str, Tensor]) -> None:
        """name: one of HEAD_NAMES. Weights of a wrong kind raise GraphError at the first text."""
        self._graph = open_head_graph(name, {"probabilities": "f"}, weights)

    def predict(self, embeddings: Sequence[Vector]) -> list[Vector]:
        """Probabilities (k,) for each embedding (d,). Raises GraphError for another dimension."""
        parts = (embeddings[start : start + _ROWS] for start in range(0, len(embeddings), _ROWS))
        return [row for part in parts for row in split(self._graph.run(rows_of(part))[0], len(part))]


def open_head_graph(name: str, outputs: Mapping[str, Kind], weights: Mapping[str, Tensor]) -> Graph:
    """One of the graphs of `coldframe.graphs`, with its weights. Raises GraphError."""
    # One thread: more would split sums differently, and a row's work is too small to split.
    return open_graph(GraphFile(GRAPHS / f"{name}.onnx", outputs, weights, threads=1))


def rows_of(embeddings: Sequence[Vector]) -> dict[str, Tensor]:
    """Embeddings, at least one, in the form that the graphs accept."""
    shape = (len(embeddings), len(embeddings[0]) // VALUE_BYTES)
    return {"embeddings": Tensor("f", shape, join(embeddings))}


def load_head(folder: Path, name: str) -> Head:
    """The head `name` of the model in `folder`.

    Raises BundleMissing or BundleCorrupt when its file cannot be used.
    """
    file = head_file(name)
    if name not in _WEIGHTS:
        raise BundleCorrupt(f"{file} is not a known head. Heads: {', '.join(_WEIGHTS)}. {REBUILD}")
    weights = read_weights(folder, file)
    if weights.keys() != _WEIGHTS[name]:
        actual, expected = sorted(weights), sorted(_WEIGHTS[name])
        raise BundleCorrupt(
            f"{file} cannot be used: it has the arrays {actual}, expected {expected}. {REBUILD}"
        )
    try:
        return GraphHead(name, weights)
    except GraphError as exc:
        raise BundleCorrupt(f"{file} cannot be used: {exc}. {REBUILD}") from exc
