"""Embeddings to answers: the probabilities of heads, and how unusual a text is to the model.

Heads and centroids are graphs over weights of their own. The heads' arithmetic is that of scikit-learn and
PyTorch at prediction time. `layers/model` writes the graphs and weights, and its training compares both.
A text's distance to the training data is the cosine of its embedding to the nearest label's centroid;
`docs/decisions/0035-out-of-distribution.md` compares it with other distances.
"""

import functools
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from coldframe.errors import BundleCorrupt
from coldframe.graphs.graph import Graph, GraphError, GraphFile, Kind, Tensor
from coldframe.graphs.runtime import open_graph
from coldframe.model.files import CENTROIDS, REBUILD, head_file
from coldframe.model.weights import read_weights
from coldframe.timing import Clock, MovingAverage
from coldframe.vectors import VALUE_BYTES, Vector, split, to_floats, to_vector

GRAPHS = Path(__file__).parent.parent / "graphs"

_TREES = {"projection", "roots", "feature", "threshold", "right", "leaf"}
_WEIGHTS = {
    "logreg": {"weight", "bias"},
    "rf": _TREES,
    "hgb": _TREES | {"baseline", "label"},
    "mlp": {"weight_1", "bias_1", "weight_2", "bias_2"},
}
"""Arrays of each head."""
_BY_LABEL = {"logreg": "bias", "rf": "leaf", "hgb": "baseline", "mlp": "bias_2"}
"""Array of each head whose last dimension is the number of labels."""
_RANKS = {"directions": 2, "usual": 1}
"""Dimensions of each array of the centroids."""

_FIRST_S, _FIRST_TEXT_S = 0.02, 0.005  # of a head, until it is measured
_ROWS = 64  # texts of one run: the trees' arrays stay in the caches


class Head(Protocol):
    """Turns embeddings (d,) into probabilities (k,), each text independently."""

    def predict(self, embeddings: Sequence[Vector]) -> list[Vector]: ...


class GraphHead:
    """A head as a graph. Safe for threads. A text has the same answer, to the bit, alone and among others."""

    def __init__(self, name: str, weights: Mapping[str, Tensor]) -> None:
        """name: one of HEAD_NAMES. Weights of a wrong kind raise GraphError at the first text."""
        self._labels = weights[_BY_LABEL[name]].shape[-1]
        self._graph = open_head_graph(name, "probabilities", "f", weights)

    def predict(self, embeddings: Sequence[Vector]) -> list[Vector]:
        """Probabilities (k,) for each embedding (d,). Raises GraphError for another dimension."""
        rows: list[Vector] = []
        for start in range(0, len(embeddings), _ROWS):
            part = embeddings[start : start + _ROWS]
            rows += split(self._graph.run(rows_of(part), (len(part), self._labels)), len(part))
        return rows


class Centroids:
    """The mean direction of each label, and the distances of the validation rows. Safe for threads."""

    def __init__(self, directions: Tensor, usual: Tensor) -> None:
        """directions: (k, d), rows of length 1. usual: strangeness of validation rows, ascending, (q,).

        Directions of another kind raise GraphError at the first text.
        """
        self.shape = directions.shape
        """Number of labels and dimension: (k, d)."""
        self._graph = open_head_graph("centroids", "strangeness", "f", {"directions": directions})
        self._usual = array("f", bytes(usual.content))

    def strangeness(self, embeddings: Sequence[Vector]) -> list[float]:
        """1 minus the cosine to the nearest centroid, for each embedding (d,), at least one."""
        return to_floats(self._graph.run(rows_of(embeddings), (len(embeddings),)))

    def out_of_distribution(self, embeddings: Sequence[Vector]) -> list[float]:
        """Share of the validation rows that are less unusual than each text, 0 to 1.

        A text has the same score, to the bit, alone and among others.
        """
        if not embeddings:
            return []
        values = to_floats(self._graph.run(rows_of(embeddings), (len(embeddings),)))
        return [share_more_usual(value, self._usual) for value in values]


class Strange(Protocol):
    """Says how strange embeddings (d,) are to a model, each from 0 to 1."""

    def out_of_distribution(self, embeddings: Sequence[Vector]) -> list[float]: ...


class Heads:
    """The heads of a model. Safe for threads: loaded heads are only read.

    If two threads are the first to use a head, both may read it, with equal results.
    """

    def __init__(
        self, read_head: Callable[[str], Head], centroids: Strange, clock: Clock = time.perf_counter
    ) -> None:
        """centroids: say how strange an embedding is to the model."""
        self._head = functools.cache(read_head)  # a head is read at its first use
        self._centroids = centroids
        self._clock = clock
        self._text_s: dict[str, MovingAverage] = {}

    def classify(
        self, embeddings: Mapping[str, Vector], heads: Iterable[str]
    ) -> dict[str, dict[str, Vector]]:
        """Answers (k + 1,) by each of `heads`, under the names of the embeddings.

        An answer is the probability of each label, and the out-of-distribution score of the text.
        """
        vectors = list(embeddings.values())
        if not vectors:
            return {head: {} for head in heads}
        scores = [to_vector([score]) for score in self._centroids.out_of_distribution(vectors)]
        answers: dict[str, list[Vector]] = {}
        for head in dict.fromkeys(heads):
            graph = self._head(head)
            started_s = self._clock()
            answers[head] = graph.predict(vectors)
            text_s = (self._clock() - started_s) / len(vectors)
            self._text_s.setdefault(head, MovingAverage(text_s)).add(text_s)
        return {
            head: {name: row + score for name, row, score in zip(embeddings, rows, scores, strict=True)}
            for head, rows in answers.items()
        }

    def probabilities(self, vectors: Sequence[Vector], head: str) -> list[Vector]:
        """Probabilities (k,) by one head for each embedding (d,)."""
        return self._head(head).predict(vectors)

    def read(self, head: str) -> None:
        """Reads a head before its first use."""
        self._head(head)

    def expected_s(self, head: str, texts: int) -> float:
        """Time that a head is expected to take for texts with embeddings, as measured in this environment.

        Before its first answer a head may have to be read.
        """
        text_s = self._text_s.get(head)
        return _FIRST_S + texts * _FIRST_TEXT_S if text_s is None else texts * text_s.value


def open_head_graph(name: str, output: str, kind: Kind, weights: Mapping[str, Tensor]) -> Graph:
    """One of the graphs of `coldframe.graphs`, with its weights. Raises GraphError."""
    # One thread: more would split sums differently, and a row's work is too small to split.
    return open_graph(GraphFile(GRAPHS / f"{name}.onnx", output, kind, weights, threads=1))


def rows_of(embeddings: Sequence[Vector]) -> dict[str, Tensor]:
    """Embeddings, at least one, in the form that the graphs accept."""
    shape = (len(embeddings), len(embeddings[0]) // VALUE_BYTES)
    return {"embeddings": Tensor("f", shape, b"".join(embeddings))}


def share_more_usual(strangeness: float, usual: Sequence[float]) -> float:
    """Share of the validation rows that are less unusual than a text, 0 to 1.

    usual: strangeness of validation rows, ascending; at least one.
    """
    return bisect_left(usual, strangeness) / len(usual)


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


def load_centroids(folder: Path) -> Centroids:
    """The centroids of the model in `folder`.

    Raises BundleMissing or BundleCorrupt when their file cannot be used.
    """
    arrays = read_weights(folder, CENTROIDS)
    shapes = {name: tensor.shape for name, tensor in arrays.items()}
    if [len(shapes.get(name, ())) for name in _RANKS] != list(_RANKS.values()) or arrays["usual"].kind != "f":
        raise BundleCorrupt(f"{CENTROIDS} has the shapes {shapes}; expected (k, d) and (q,). {REBUILD}")
    try:
        return Centroids(arrays["directions"], arrays["usual"])
    except GraphError as exc:
        raise BundleCorrupt(f"{CENTROIDS} cannot be used: {exc}. {REBUILD}") from exc
