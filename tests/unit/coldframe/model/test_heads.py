"""The heads' arithmetic, against the plainest possible reading of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.model.bundle import load_manifest
from coldframe.model.files import HEAD_NAMES, head_folder, model_folder
from coldframe.model.heads import Arrays, BoostedTrees, RandomForest, Trees, load_head
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
    leaves = Trees(TREES).leaves(np.array([[x, y]], dtype=np.float32))
    assert leaves.tolist() == [[expected, 1]]


def test_forest_averages_its_leaves() -> None:
    """The forest's answer is the mean of the frequencies reached."""
    leaf = np.array([[65535, 0], [0, 65535], [32768, 32767]], dtype=np.uint16)
    forest = RandomForest({**TREES, "leaf": leaf})
    probabilities = forest.predict(np.array([[0, 0], [1, -2], [1, 0]], dtype=np.float32))
    expected = np.array([[0.5, 0.5], [0, 1], [0.25, 0.75]])
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)


def test_boosting_is_one_vs_rest() -> None:
    """Each class sums its own trees and baseline; the sigmoids are made to sum to one."""
    boosted = BoostedTrees(
        {
            **TREES,
            "leaf": np.array([1.0, -2.0, 0.5], dtype=np.float32),
            "baseline": np.array([0.25, -0.5]),
            "first_tree": np.array([0, 1], dtype=np.int32),
        }
    )
    sigmoid = 1 / (1 + np.exp(-np.array([1.0 + 0.25, -2.0 - 0.5])))
    probabilities = boosted.predict(np.array([[0.5, 0]], dtype=np.float32))
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
    embeddings = embeddings_of(3, 150)
    together = head.predict(embeddings)
    assert together.shape == (150, len(load_manifest(bundle, EXAMPLE).labels))
    assert together.dtype == np.float32
    np.testing.assert_allclose(together.sum(axis=1), 1, atol=1e-5)
    for row in (0, 63, 64, 149):
        assert head.predict(embeddings[row : row + 1]).tobytes() == together[row].tobytes()


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_no_texts_no_rows(bundle: Path, name: str) -> None:
    """A head asked about nothing answers nothing."""
    head = load_head(model_folder(bundle, EXAMPLE), name)
    nothing = np.empty((0, DIMENSION), dtype=np.float32)
    assert head.predict(nothing).shape == (0, len(load_manifest(bundle, EXAMPLE).labels))


def test_missing_head(tmp_path: Path) -> None:
    """A head file that is not there is named, with what to do."""
    with pytest.raises(BundleMissing, match=r"no readable heads/rf .*Run `coldframe build`"):
        load_head(tmp_path, "rf")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY broken", b"\x80\x04N."])
def test_corrupt_head(tmp_path: Path, content: bytes) -> None:
    """A head file that is no plain array is refused; a pickle is never loaded."""
    folder = tmp_path / head_folder("mlp")
    folder.mkdir(parents=True)
    (folder / "weight_1.npy").write_bytes(content)
    with pytest.raises(BundleCorrupt, match=r"heads/mlp cannot be read"):
        load_head(tmp_path, "mlp")


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    """An array that hides a pickle is refused."""
    folder = tmp_path / head_folder("mlp")
    folder.mkdir(parents=True)
    hidden: Any = np.array([{"a": 1}], dtype=object)
    np.save(folder / "weight_1.npy", hidden, allow_pickle=True)
    with pytest.raises(BundleCorrupt):
        load_head(tmp_path, "mlp")
