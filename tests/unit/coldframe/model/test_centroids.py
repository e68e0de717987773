"""How strange an embedding is, against the plainest possible reading of it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.graphs.graph import Tensor
from coldframe.model.files import CENTROIDS
from coldframe.model.heads import Centroids, load_centroids
from coldframe.model.weights import write_weights
from coldframe_training.embeddings.matrices import Arrays, to_vectors
from coldframe_training.publishing.head_files import tensor_of

DIMENSION = 384


def unit_rows(seed: int, rows: int) -> NDArray[np.float32]:
    """Random embeddings of length 1."""
    drawn = np.random.default_rng(seed).normal(size=(rows, DIMENSION)).astype(np.float32)
    unit: NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def arrays_of(labels: int, seed: int = 0) -> Arrays:
    """Random centroids, and what is usual of random rows."""
    directions = np.ascontiguousarray(unit_rows(seed, labels).T)
    usual = np.sort(1 - (unit_rows(seed + 1, 97) @ directions).max(axis=1))
    return {"directions": directions, "usual": usual}


def tensors(arrays: Arrays) -> dict[str, Tensor]:
    """As a bundle has them."""
    return {"directions": tensor_of(arrays["directions"].T), "usual": tensor_of(arrays["usual"])}


@pytest.mark.parametrize("labels", [2, 20, 1000])
@pytest.mark.parametrize("rows", [1, 2, 65])
def test_texts_are_on_their_own(labels: int, rows: int) -> None:
    """A text's strangeness is the same, to the bit, alone and among others, for two labels or a thousand."""
    centroids, embeddings = Centroids(**tensors(arrays_of(labels))), to_vectors(unit_rows(5, rows))
    together, scores = centroids.strangeness(embeddings), centroids.out_of_distribution(embeddings)
    for row in range(rows):
        alone = embeddings[row : row + 1]
        assert centroids.strangeness(alone) == together[row : row + 1]
        assert centroids.out_of_distribution(alone) == scores[row : row + 1]


@given(st.integers(2, 40), st.integers(0, 99), st.integers(1, 9))
def test_is_the_cosine_to_the_nearest_centroid(labels: int, seed: int, rows: int) -> None:
    """Strangeness is 1 minus the largest cosine, and the score the share of rows below it."""
    arrays, embeddings = arrays_of(labels, seed), unit_rows(seed + 2, rows)
    centroids, vectors = Centroids(**tensors(arrays)), to_vectors(embeddings)
    plain = [1 - max(float(row @ column) for column in arrays["directions"].T) for row in embeddings]
    np.testing.assert_allclose(centroids.strangeness(vectors), plain, atol=1e-6)
    shares = [(arrays["usual"] < value).mean() for value in centroids.strangeness(vectors)]
    assert centroids.out_of_distribution(vectors) == pytest.approx(shares)


def test_a_centroid_is_the_most_usual(tmp_path: Path) -> None:
    """A text in the direction of a centroid is as usual as can be; one that points away from all is not."""
    arrays = arrays_of(2)
    write_weights(tmp_path / CENTROIDS, tensors(arrays))
    first, second = arrays["directions"].T
    assert load_centroids(tmp_path).out_of_distribution(to_vectors(np.stack([first, -first - second]))) == [
        0.0,
        1.0,
    ]


def test_no_texts_no_scores() -> None:
    """Asked about nothing, it answers nothing."""
    assert Centroids(**tensors(arrays_of(3))).out_of_distribution([]) == []


def test_missing_and_corrupt_files(tmp_path: Path) -> None:
    """A file that is not there or not what training writes is named, with what to do."""
    with pytest.raises(BundleMissing, match=r"no readable centroids\.bin.*coldframe build"):
        load_centroids(tmp_path)
    whole = tensors(arrays_of(3))
    write_weights(tmp_path / CENTROIDS, {"directions": whole["directions"]})
    with pytest.raises(BundleCorrupt, match=r"'directions': \(3, 384\)}; expected \(k, d\) and \(q,\)"):
        load_centroids(tmp_path)
    (tmp_path / CENTROIDS).write_bytes(b"\x80\x04N.")
    with pytest.raises(BundleCorrupt, match=r"centroids\.bin cannot be read"):
        load_centroids(tmp_path)
