"""Distance of a text to a model's training data: the cosine of its embedding to the nearest label's centroid.

`docs/decisions/0035-out-of-distribution.md` compares it with other distances.
"""

from array import array
from collections.abc import Sequence
from pathlib import Path

from coldframe.errors import BundleCorrupt
from coldframe.graphs.graph import GraphError, Tensor
from coldframe.model.estimator import share_more_usual
from coldframe.model.files import CENTROIDS, REBUILD
from coldframe.model.heads import open_head_graph, rows_of
from coldframe.model.weights import read_weights
from coldframe.vectors import Vector, to_floats

_RANKS = {"directions": 2, "usual": 1}


class Centroids:
    """The mean direction of each label, and the distances of the validation rows. Safe for threads."""

    def __init__(self, directions: Tensor, usual: Tensor) -> None:
        """directions: (k, d), rows of length 1. usual: strangeness of validation rows, ascending, (q,).

        Directions of another kind raise GraphError at the first text.
        """
        self.shape = directions.shape
        """Number of labels and dimension: (k, d)."""
        self._graph = open_head_graph("centroids", {"strangeness": "f"}, {"directions": directions})
        self._usual = array("f", bytes(usual.content))

    def strangeness(self, embeddings: Sequence[Vector]) -> list[float]:
        """1 minus the cosine to the nearest centroid, for each embedding (d,)."""
        if not embeddings:
            return []
        return to_floats(self._graph.run(rows_of(embeddings))[0])

    def out_of_distribution(self, embeddings: Sequence[Vector]) -> list[float]:
        """Share of the validation rows that are less unusual than each text, 0 to 1.

        A text has the same score, to the bit, alone and among others.
        """
        return [share_more_usual(score, self._usual) for score in self.strangeness(embeddings)]


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
