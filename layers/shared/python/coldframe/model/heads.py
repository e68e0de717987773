"""Embeddings to class probabilities: four heads in plain numpy.

Each is a folder of arrays, read with `allow_pickle=False`. The arithmetic
is that of scikit-learn and PyTorch at prediction time; `layers/model/convert.py`
writes the arrays, and `train_heads.py` proves the agreement. Heads are only read once made: they are
safe for threads.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.model.encoder import Embeddings
from coldframe.model.files import head_folder

Probabilities: TypeAlias = NDArray[np.float32]
"""float32 (n, k), every row sums to 1."""

Arrays: TypeAlias = dict[str, NDArray[Any]]

_TREE_ROWS = 64  # rows walked down the trees at once: keeps the work in the caches


class Head(Protocol):
    """Anything that turns embeddings (n, d) into probabilities (n, k)."""

    def predict(self, embeddings: Embeddings) -> Probabilities: ...


class LogisticRegression:
    """Multinomial logistic regression: softmax(x W + b)."""

    def __init__(self, arrays: Arrays) -> None:
        self._weight, self._bias = arrays["weight"], arrays["bias"]  # (d, k), (k,)

    def predict(self, embeddings: Embeddings) -> Probabilities:
        return _softmax(times(embeddings, self._weight) + self._bias)


class MultilayerPerceptron:
    """One hidden layer of rectified units, then softmax."""

    def __init__(self, arrays: Arrays) -> None:
        self._weight_1, self._bias_1 = arrays["weight_1"], arrays["bias_1"]  # (d, h), (h,)
        self._weight_2, self._bias_2 = arrays["weight_2"], arrays["bias_2"]  # (h, k), (k,)

    def predict(self, embeddings: Embeddings) -> Probabilities:
        hidden = np.maximum(times(embeddings, self._weight_1) + self._bias_1, 0)  # (n, h)
        return _softmax(times(hidden, self._weight_2) + self._bias_2)


class Trees:
    """Binary trees laid end to end; a node's left child is the node after it.

    They are cut along the discriminant directions of the embedding, `projection`.
    Thresholds are float32, rounded towards minus infinity from the float64
    ones of training: for a float32 x both comparisons are the same.
    """

    def __init__(self, arrays: Arrays) -> None:
        self._projection = arrays["projection"]  # (d, k - 1), float64
        self._feature: NDArray[np.int16] = arrays["feature"].astype(np.int16, copy=False)  # -1: a leaf
        self._threshold = arrays["threshold"]
        self._right = arrays["right"]  # at a leaf: its row in the table of leaf values
        self._roots: NDArray[np.int32] = arrays["roots"].astype(np.int32, copy=False)

    def leaves(self, embeddings: Embeddings) -> NDArray[np.int32]:
        """Row of the leaf table that each text reaches in each tree: (n, trees)."""
        projected = times(embeddings, self._projection).astype(np.float32)  # (n, k - 1)
        rows = np.arange(len(embeddings))[:, None]
        node = np.repeat(self._roots[None, :], len(embeddings), axis=0)  # (n, trees)
        feature = self._feature[node]
        while (inner := feature >= 0).any():
            left = projected[rows, feature] <= self._threshold[node]
            node = np.where(inner, np.where(left, node + 1, self._right[node]), node)
            feature = self._feature[node]
        reached: NDArray[np.int32] = self._right[node]
        return reached


class RandomForest:
    """Mean of the class frequencies in the leaves reached."""

    def __init__(self, arrays: Arrays) -> None:
        self._trees = Trees(arrays)
        self._frequencies = arrays["leaf"]  # (leaves, k), uint16: 65535 is 1

    def predict(self, embeddings: Embeddings) -> Probabilities:
        return _by_chunk(self._predict, embeddings)

    def _predict(self, embeddings: Embeddings) -> Probabilities:
        reached = self._frequencies[self._trees.leaves(embeddings)]  # (n, trees, k)
        total = reached.sum(axis=1, dtype=np.uint32)  # (n, k), exact
        probabilities: Probabilities = (total / total.sum(axis=1, keepdims=True)).astype(np.float32)
        return probabilities


class BoostedTrees:
    """One-vs-rest gradient boosting: a sigmoid per class, made to sum to 1."""

    def __init__(self, arrays: Arrays) -> None:
        self._trees = Trees(arrays)
        self._value = arrays["leaf"]  # (leaves,), float32
        self._baseline = arrays["baseline"]  # (k,)
        self._first_tree = arrays["first_tree"]  # (k,): where each class's trees begin

    def predict(self, embeddings: Embeddings) -> Probabilities:
        return _by_chunk(self._predict, embeddings)

    def _predict(self, embeddings: Embeddings) -> Probabilities:
        reached = self._value[self._trees.leaves(embeddings)].astype(np.float64)  # (n, trees)
        raw = np.add.reduceat(reached, self._first_tree, axis=1) + self._baseline  # (n, k)
        positive = 1 / (1 + np.exp(-raw))
        probabilities: Probabilities = (positive / positive.sum(axis=1, keepdims=True)).astype(np.float32)
        return probabilities


_KINDS: dict[str, type[LogisticRegression | MultilayerPerceptron | RandomForest | BoostedTrees]] = {
    "logreg": LogisticRegression,
    "mlp": MultilayerPerceptron,
    "rf": RandomForest,
    "hgb": BoostedTrees,
}


def load_head(folder: Path, name: str) -> Head:
    """The head `name` of the bundle in `folder`.

    Raises BundleMissing or BundleCorrupt when its file cannot be used.
    """
    place = head_folder(name)
    try:
        files = list((folder / place).iterdir())
        arrays = {path.stem: np.load(path, allow_pickle=False) for path in files}
        return _KINDS[name](arrays)
    except OSError as exc:
        raise BundleMissing(
            f"{folder} has no readable {place} ({exc.strerror}). Run `coldframe build`."
        ) from exc
    except (KeyError, ValueError, EOFError, TypeError) as exc:
        raise BundleCorrupt(f"{place} cannot be read: {exc}. Run `coldframe build`.") from exc


def times(rows: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
    """Matrix product, one row at a time: BLAS rounds a row of a larger product otherwise.

    A prediction must not depend, not by a bit, on the texts it was asked with:
    it may come from the cache the next time.
    """
    product: NDArray[Any] = np.matmul(rows[:, None, :], weight)[:, 0, :]
    return product


def _softmax(logits: NDArray[Any]) -> Probabilities:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Probabilities = shifted / shifted.sum(axis=1, keepdims=True)
    return probabilities


def _by_chunk(predict: Callable[[Embeddings], Probabilities], embeddings: Embeddings) -> Probabilities:
    chunks = range(0, max(1, len(embeddings)), _TREE_ROWS)
    return np.concatenate([predict(embeddings[start : start + _TREE_ROWS]) for start in chunks])
