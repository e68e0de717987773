"""Centroids, and what is usual, from training rows."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.model.heads import load_centroids
from coldframe_training.embeddings.matrices import to_vectors
from coldframe_training.out_of_distribution.strangeness import thin
from coldframe_training.publishing.head_files import unpack_centroids
from coldframe_training.training.train_centroids import directions, train_centroids
from coldframe_training.training_data.samples import Embedded


def embedded(labels: int, each: int, dimension: int = 16) -> Embedded:
    """Rows near a direction of their label."""
    random = np.random.default_rng(labels)
    target = np.repeat(np.arange(labels), each)
    rows = random.normal(size=(labels, dimension))[target] + 0.3 * random.normal(
        size=(len(target), dimension)
    )
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return Embedded({"text": unit, "other form": unit[::-1].copy()}, {}, target)


@pytest.mark.parametrize("labels", [2, 1000])
def test_what_is_written_is_what_is_served(tmp_path: Path, labels: int) -> None:
    """The bundle's centroids score as those that training returns, to the bit."""
    train = embedded(labels, each=4)
    rows = np.arange(len(train.target))
    trained = train_centroids(train, rows[rows % 4 > 0], rows[rows % 4 == 0], tmp_path)
    unpack_centroids(tmp_path, tmp_path / "bundle")
    served = load_centroids(tmp_path / "bundle")
    sent = to_vectors(train.as_sent)
    assert served.out_of_distribution(sent) == trained.out_of_distribution(sent)


def test_rows_that_were_held_out_lie_flat(tmp_path: Path) -> None:
    """New rows of the same kind have scores that are spread evenly from 0 to 1; other rows do not."""
    train, rows = embedded(5, each=400), np.arange(2000)
    half = train._replace(forms={"text": train.as_sent})
    centroids = train_centroids(half, rows[rows % 4 > 1], rows[rows % 4 == 0], tmp_path)
    scores = np.array(centroids.out_of_distribution(to_vectors(train.as_sent[rows % 4 == 1])))
    shares = np.histogram(scores, bins=5, range=(0, 1))[0] / len(scores)
    assert (abs(shares - 0.2) < 0.07).all()
    assert np.mean(centroids.out_of_distribution(to_vectors(-train.as_sent))) > 0.9


def test_directions_are_means_of_length_one() -> None:
    """Each column is the mean of its class, at length 1; a mean of nothing stays nothing."""
    rows = np.array([[1, 0], [0, 1], [0, 1], [0, -1]], dtype=np.float32)
    found = directions(rows, np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(found, [[np.sqrt(0.5), 0], [np.sqrt(0.5), 0]], atol=1e-6)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=900))
def test_thinned_values_stand_for_all(values: list[float]) -> None:
    """At most 200 values, ascending, keep every share within 0.25 %; up to 200 they are all kept."""
    kept = thin(np.array(values))
    assert len(kept) == min(200, len(values))
    assert (np.diff(kept) >= 0).all()
    for limit in values[:20]:
        share, of_all = (kept < limit).mean(), (np.array(values) < limit).mean()
        assert abs(share - of_all) <= (0.0025 + 1e-9 if len(values) > 200 else 1e-9)
