"""How far a text is from what a model knows, by its embedding: the cosine to the nearest label's centroid.

`docs/decisions/0035-out-of-distribution.md` compares it with other distances.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.model.encoder import Embeddings
from coldframe.model.files import CENTROIDS, REBUILD
from coldframe.model.heads import Arrays, times


class Centroids:
    """The mean direction of each label, and how near the validation rows are. Safe for threads: only read."""

    def __init__(self, arrays: Arrays) -> None:
        self._directions = arrays["directions"]  # (d, k), float32, columns of length 1
        self._usual = arrays["usual"]  # (q,), float32: strangeness of validation rows, ascending

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimension and number of labels: (d, k)."""
        return self._directions.shape

    def strangeness(self, embeddings: Embeddings) -> NDArray[np.float32]:
        """1 minus the cosine to the nearest centroid, (n,)."""
        return _strangeness(times(embeddings, self._directions))

    def out_of_distribution(self, embeddings: Embeddings) -> list[float]:
        """Share of the validation rows that look more usual than each text, 0 to 1, (n,).

        A text has the same score, to the bit, alone and among others.
        """
        strangeness = _strangeness(times(embeddings, self._directions))
        below = np.searchsorted(self._usual, strangeness, side="left")
        shares: list[float] = (below / len(self._usual)).tolist()
        return shares


def _strangeness(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """cosines: to each label's centroid, (n, k)."""
    nearest: NDArray[np.float32] = cosines.max(axis=1, initial=-1)
    return 1 - nearest


def load_centroids(folder: Path) -> Centroids:
    """The centroids of the model in `folder`.

    Raises BundleMissing or BundleCorrupt when their files cannot be used.
    """
    try:
        names = ("directions", "usual")
        arrays = {name: np.load(folder / CENTROIDS / f"{name}.npy", allow_pickle=False) for name in names}
    except OSError as exc:
        raise BundleMissing(f"{folder} has no readable {CENTROIDS} ({exc.strerror}). {REBUILD}") from exc
    except (ValueError, EOFError) as exc:
        raise BundleCorrupt(f"{CENTROIDS} cannot be read: {exc}. {REBUILD}") from exc
    if arrays["directions"].ndim != 2 or arrays["usual"].ndim != 1 or not len(arrays["usual"]):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise BundleCorrupt(f"{CENTROIDS} has the shapes {shapes}; expected (d, k) and (q,). {REBUILD}")
    return Centroids(arrays)
