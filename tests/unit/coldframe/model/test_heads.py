"""The heads' arithmetic, against the plainest possible reading of it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coldframe.errors import BundleError, BundleMissing
from coldframe.model.bundle import load_manifest
from coldframe.model.files import HEAD_NAMES, head_file, model_folder
from coldframe.model.heads import GraphHead, load_head
from coldframe.vectors import to_floats
from coldframe_training.embeddings.matrices import Arrays, predict_rows, to_matrix, to_vectors
from coldframe_training.publishing.head_files import graph_weights
from tests.conftest import EXAMPLE

DIMENSION = 384

# Two trees over two directions. Node: feature, threshold, right (at a leaf: its row).
#   tree 0:  x0 <= 0.5 ? leaf 0 : (x1 <= -1 ? leaf 1 : leaf 2)      tree 1: leaf 1 alone
TREES: Arrays = {
    "projection": np.eye(2),
    "roots": np.array([0, 5], dtype=np.int32),
    "feature": np.array([0, -1, 1, -1, -1, -1], dtype=np.int16),
    "threshold": np.array([0.5, 0, -1, 0, 0, 0], dtype=np.float32),
    "right": np.array([2, 0, 4, 1, 2, 1], dtype=np.int32),
}
points = st.floats(-2, 2, width=32) | st.sampled_from([0.5, -1.0])


@given(points, points)
def test_trees_take_the_right_branch(x: float, y: float) -> None:
    """A value equal to the threshold goes left, as scikit-learn's do."""
    expected = 0 if np.float32(x) <= 0.5 else 1 if np.float32(y) <= -1 else 2
    leaf = np.array([[65535, 0, 0], [0, 65535, 0], [0, 0, 65535]], dtype=np.uint16)
    forest = GraphHead("rf", graph_weights({**TREES, "leaf": leaf}))
    (found,) = forest.predict(to_vectors(np.array([[x, y]])))
    assert to_floats(found) == ((np.eye(3)[expected] + np.eye(3)[1]) / 2).tolist()


def test_forest_averages_its_leaves() -> None:
    """The forest's answer is the mean of the frequencies reached."""
    leaf = np.array([[65535, 0], [0, 65535], [32768, 32767]], dtype=np.uint16)
    forest = GraphHead("rf", graph_weights({**TREES, "leaf": leaf}))
    probabilities = predict_rows(forest, np.array([[0, 0], [1, -2], [1, 0]], dtype=np.float32))
    expected = np.array([[0.5, 0.5], [0, 1], [0.25, 0.75]])
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)


def test_boosting_is_one_vs_rest() -> None:
    """Each class sums its own trees and baseline; the sigmoids are made to sum to one."""
    arrays = {
        **TREES,
        "leaf": np.array([1.0, -2.0, 0.5], dtype=np.float32),
        "baseline": np.array([0.25, -0.5]),
        "first_tree": np.array([0, 1], dtype=np.int32),
    }
    boosted = GraphHead("hgb", graph_weights(arrays))
    sigmoid = 1 / (1 + np.exp(-np.array([1.0 + 0.25, -2.0 - 0.5])))
    probabilities = predict_rows(boosted, np.array([[0.5, 0]], dtype=np.float32))
    np.testing.assert_allclose(probabilities[0], sigmoid / sigmoid.sum(), atol=1e-6)


def embeddings_of(seed: int, rows: int) -> NDArray[np.float32]:
    """Random embeddings of length 1."""
    drawn = np.random.default_rng(seed).normal(size=(rows, DIMENSION)).astype(np.float32)
    unit: NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_rows_are_on_their_own(bundle: Path, name: str) -> None:
    """A row's probabilities are the same, to the bit, in a batch of 150 and alone, and sum to one."""
    head = load_head(model_folder(bundle, EXAMPLE), name)
    embeddings = to_vectors(embeddings_of(3, 150))
    together = head.predict(embeddings)
    assert to_matrix(together).shape == (150, len(load_manifest(bundle, EXAMPLE).labels))
    np.testing.assert_allclose(to_matrix(together).sum(axis=1), 1, atol=1e-5)
    for row, embedding in enumerate(embeddings):
        assert head.predict([embedding]) == [together[row]]
    for cut in (1, 2, 3, 5, 64, 65, 100):
        assert head.predict(embeddings[:cut]) + head.predict(embeddings[cut:]) == together


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_no_texts_no_rows(bundle: Path, name: str) -> None:
    """A head asked about nothing answers nothing."""
    head = load_head(model_folder(bundle, EXAMPLE), name)
    assert head.predict([]) == []


def test_missing_head(tmp_path: Path) -> None:
    """A head file that is not there is named, with what to do."""
    with pytest.raises(BundleMissing, match=r"no readable heads/rf\.bin.*Run `coldframe build`"):
        load_head(tmp_path, "rf")


@pytest.mark.parametrize(
    "content", [b"\x93NUMPY broken", b"\x80\x04N.", b"{}\n", b'{"bias": ["f", [3], 0]}\n']
)
def test_corrupt_head(tmp_path: Path, content: bytes) -> None:
    """A head file that is not what training writes is named, with what to do; a pickle is never loaded."""
    path = tmp_path / head_file("mlp")
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(BundleError, match=r"heads/mlp\.bin cannot .*Run `coldframe build`"):
        load_head(tmp_path, "mlp").predict(to_vectors(embeddings_of(0, 1)))


def test_a_damaged_tree_ends() -> None:
    """A node whose right child is before it would be walked round for ever; the walk has an end."""
    leaf = np.array([[65535, 0], [0, 65535], [1, 1]], dtype=np.uint16)
    damaged = {**TREES, "right": np.array([0, 0, 0, 1, 2, 1], dtype=np.int32), "leaf": leaf}
    forest = GraphHead("rf", graph_weights(damaged))
    (row,) = forest.predict(to_vectors(np.array([[1.0, 0.0]])))
    assert len(to_floats(row)) == 2
