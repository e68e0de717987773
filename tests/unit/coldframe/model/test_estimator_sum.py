"""A graph adds up what the estimator's tokens say, to the bit as plain Python does."""

import math
import random
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.model.bundle import EstimatorFacts, load_encoder_manifest, load_manifest
from coldframe.model.estimator import Estimator
from coldframe.model.files import ESTIMATOR, model_folder
from coldframe.model.tokenizer import TextWindows, content_tokens
from coldframe_bench.data.texts import sentences
from tests.conftest import ENCODER_NAME, EXAMPLE

TOKENS = 300


@pytest.fixture(scope="module")
def estimators(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Estimator, EstimatorFacts]]:
    """By number of labels: a random estimator, and its facts."""
    found = {}
    for labels in (1, 2, 3, 20, 150):
        source = random.Random(labels)
        folder = tmp_path_factory.mktemp("bundle")
        idf = [source.uniform(1, 11) for _ in range(TOKENS)]
        weights = [source.randint(-32768, 32767) for _ in range(TOKENS * labels)]
        content = struct.pack(f"<{TOKENS}f", *idf) + struct.pack(f"<{len(weights)}h", *weights)
        (folder / ESTIMATOR).write_bytes(content)
        facts = EstimatorFacts(
            vocabulary=TOKENS,
            scales=[source.random() for _ in range(labels)],
            bias=[0.0] * labels,
            temperature=1.0,
            threshold=0.5,
            partner="mlp",
        )
        found[labels] = Estimator(folder, facts), facts
    return found


def plain_evidence(estimator: Estimator, facts: EstimatorFacts, ids: Iterable[int]) -> list[float]:
    """What the tokens say, added up one after the other."""
    counts = Counter(ids)
    factors = [(1 + math.log(count)) * estimator.idf[token] for token, count in counts.items()]
    labels = len(facts.scales)
    sums = [0.0] * labels
    for token, factor in zip(counts, factors, strict=True):
        row = estimator.weights[token * labels : (token + 1) * labels]
        sums = [total + factor * value for total, value in zip(sums, row, strict=True)]
    squares = 0.0
    for factor in factors:
        squares += factor * factor
    length = math.sqrt(squares) or 1.0
    return [total * scale / length for total, scale in zip(sums, facts.scales, strict=True)]


def bits(values: list[float]) -> bytes:
    """Values as float64, so that 0 and -0 differ."""
    return struct.pack(f"{len(values)}d", *values)


@given(ids=st.lists(st.integers(0, TOKENS - 1), max_size=1016), labels=st.sampled_from([1, 2, 3, 20, 150]))
def test_the_bits_are_the_same(
    estimators: dict[int, tuple[Estimator, EstimatorFacts]], ids: list[int], labels: int
) -> None:
    """Of any tokens, for few labels and for many; no tokens say nothing."""
    estimator, facts = estimators[labels]
    assert bits(estimator.evidence(ids)) == bits(plain_evidence(estimator, facts, ids))
    assert estimator.evidence([]) == [0.0] * labels


def test_the_bits_of_the_served_estimator_are_the_same(bundle: Path, encoder_dir: Path) -> None:
    """Of sentences, of a text of several windows and of an empty one."""
    facts = load_manifest(bundle, EXAMPLE).estimator
    estimator = Estimator(model_folder(bundle, EXAMPLE), facts)
    windows = TextWindows(encoder_dir, load_encoder_manifest(bundle, ENCODER_NAME).facts)
    texts = [*sentences()[:300], " ".join(sentences()[:80]), ""]
    for cut in windows.cut(texts):
        ids = content_tokens(cut)
        assert bits(estimator.evidence(ids)) == bits(plain_evidence(estimator, facts, ids))
