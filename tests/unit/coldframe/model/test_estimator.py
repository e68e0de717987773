"""The lexical estimator, against TF-IDF written out."""

import math
import struct
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.model.bundle import EstimatorFacts, load_manifest
from coldframe.model.estimator import Estimator
from coldframe.model.files import ESTIMATOR
from tests.conftest import EXAMPLE

IDF = [1.0, 2.0, 0.5, 3.0]
WEIGHTS = [[3, -1], [0, 2], [-4, 4], [1, 1]]  # (V, k)
FACTS = EstimatorFacts(
    vocabulary=4, scales=[0.5, 0.25], bias=[0.1, -0.2], temperature=0.7, threshold=0.8, partner="mlp"
)


@pytest.fixture(scope="module")
def estimator(tmp_path_factory: pytest.TempPathFactory) -> Estimator:
    """An estimator of four tokens and two labels."""
    folder = tmp_path_factory.mktemp("bundle")
    flat = [weight for row in WEIGHTS for weight in row]
    (folder / ESTIMATOR).write_bytes(struct.pack("<4f", *IDF) + struct.pack("<8h", *flat))
    return Estimator(folder, FACTS)


@given(st.lists(st.integers(0, 3), max_size=30))
def test_is_tfidf(estimator: Estimator, ids: list[int]) -> None:
    """Its probabilities are those of a linear layer over sublinear TF-IDF of length 1."""
    weights = {token: (1 + math.log(n)) * IDF[token] for token, n in Counter(ids).items()}
    length = math.sqrt(sum(weight**2 for weight in weights.values())) or 1
    logits = [
        sum(
            weight / length * WEIGHTS[token][label] * FACTS.scales[label] for token, weight in weights.items()
        )
        + FACTS.bias[label]
        for label in range(2)
    ]
    powers = [math.exp(logit / FACTS.temperature) for logit in logits]
    assert estimator.predict(ids) == pytest.approx([power / sum(powers) for power in powers])


@given(st.permutations([0, 1, 1, 2, 3, 3, 3]))
def test_order_of_tokens_means_little(estimator: Estimator, ids: list[int]) -> None:
    """It counts words: their order changes nothing but rounding."""
    assert estimator.predict(ids) == pytest.approx(estimator.predict(sorted(ids)))


def test_sure_above_its_threshold(estimator: Estimator) -> None:
    """It is sure above the threshold, not at it."""
    assert [estimator.is_sure([p, 1 - p], [0]) for p in (0.79, 0.8, 0.81)] == [False, False, True]


def test_not_sure_of_tokens_it_does_not_know(tmp_path: Path, estimator: Estimator) -> None:
    """Without enough different tokens that training saw it is not sure, however high its probability."""
    (tmp_path / ESTIMATOR).write_bytes(struct.pack("<4f", *IDF) + struct.pack("<8h", *[0] * 8))
    careful = Estimator(tmp_path, msgspec.structs.replace(FACTS, min_tokens=2, unseen_idf=3.0))
    texts = [[0, 1], [0, 0, 0], [0, 3], [], [2, 3, 1]]  # token 3 was not seen
    assert [careful.is_sure([0.99, 0.01], ids) for ids in texts] == [True, False, False, False, True]
    assert estimator.is_sure([0.99, 0.01], [])


def test_file_must_fit(tmp_path: Path) -> None:
    """A file of the wrong size, an empty one and a missing one are named."""
    with pytest.raises(BundleMissing, match=ESTIMATOR):
        Estimator(tmp_path, FACTS)
    (tmp_path / ESTIMATOR).write_bytes(b"")
    with pytest.raises(BundleMissing, match=ESTIMATOR):
        Estimator(tmp_path, FACTS)
    (tmp_path / ESTIMATOR).write_bytes(b"short")
    with pytest.raises(BundleCorrupt, match="5 bytes"):
        Estimator(tmp_path, FACTS)


def test_served_estimator_is_calibrated_for_the_tokenizer(bundle: Path, encoder_dir: Path) -> None:
    """The served one knows every token of the served tokenizer, and the labels of the manifest."""
    manifest = load_manifest(bundle, EXAMPLE)
    facts = manifest.estimator
    tokenizer = msgspec.json.decode((encoder_dir / "tokenizer.json").read_bytes())
    assert facts.vocabulary == len(tokenizer["model"]["vocab"])
    assert len(facts.scales) == len(facts.bias) == len(manifest.labels)
    assert facts.partner in manifest.heads
    assert 0.3 <= facts.threshold < 1
