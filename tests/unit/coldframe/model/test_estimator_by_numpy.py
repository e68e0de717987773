"""Numpy adds up what the estimator's tokens say, to the bit as plain Python does."""

import random
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.data.texts import sentences
from coldframe.config import Settings
from coldframe.model.bundle import EstimatorFacts
from coldframe.model.estimator import Estimator
from coldframe.model.files import ESTIMATOR
from coldframe.model.model import add_with_numpy
from coldframe.pipeline.models import load_predictor
from tests.conftest import EXAMPLE

TOKENS = 300


@pytest.fixture(scope="module")
def estimators(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Estimator, Estimator]]:
    """By number of labels: the same random estimator twice, plain and with numpy."""
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
        plain, quick = Estimator(folder, facts), Estimator(folder, facts)
        add_with_numpy(quick)
        found[labels] = plain, quick
    return found


@given(ids=st.lists(st.integers(0, TOKENS - 1), max_size=1016), labels=st.sampled_from([1, 2, 3, 20, 150]))
def test_the_bits_are_the_same(
    estimators: dict[int, tuple[Estimator, Estimator]], ids: list[int], labels: int
) -> None:
    """Of any tokens, for few labels and for many; no tokens say nothing."""
    plain, quick = estimators[labels]
    assert quick.evidence(ids) == plain.evidence(ids)


def test_a_loaded_model_adds_with_numpy(bundle: Path) -> None:
    """What the estimator says of a text is the same before the model is there and after."""
    predictor = load_predictor(Settings(model_dir=bundle, models=EXAMPLE))
    texts = [*sentences()[:300], " ".join(sentences()[:80]), ""]
    before = predictor.guess(texts)
    predictor.model.get()
    assert predictor.guess(texts) == before
