"""Long texts on the real model: `auto` stops reading where its answer is settled, in any company."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from coldframe.config import Settings
from coldframe.model.estimator import AnswerSource, Estimator
from coldframe.model.files import AUTO, model_folder
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe_bench.data.texts import sentences
from tests.conftest import EXAMPLE

pytestmark = pytest.mark.waits

MARGIN = 0.2
THREADS = 8


def long_texts() -> list[str]:
    """Sentences of few and of many topics, up to some 1,500 words; seeded."""
    chance = random.Random(7)
    texts = []
    for _ in range(16):
        some = chance.sample(sentences(), chance.choice([3, 6, 12, 24, 60]))
        texts.append(" ".join(chance.choices(some, k=chance.choice([30, 60, 100]))))
    return texts


@dataclass
class Asked:
    """A predictor, and what it answers to each text alone."""

    predictor: Predictor
    alone: dict[str, tuple[bytes, AnswerSource]]
    windows: dict[str, int]


def reading_early(bundle: Path, max_windows: int = 0) -> Predictor:
    """The example with a margin of its own, whatever it was trained with."""
    predictor = load_predictor(Settings(model_dir=bundle, models=EXAMPLE, max_windows=max_windows))
    facts = replace(predictor.manifest.estimator, settled_margin=MARGIN)
    estimator = Estimator(model_folder(bundle, EXAMPLE), facts)
    manifest = replace(predictor.manifest, estimator=facts)
    tokenizer, cache = predictor.tokenizer, predictor.cache
    return Predictor(manifest, predictor.encoder, tokenizer, estimator, predictor.model, cache)


@pytest.fixture(scope="module")
def asked(bundle: Path) -> Asked:
    predictor = reading_early(bundle)
    found = {text: predictor.predict([text], [AUTO], use_cache=False) for text in long_texts()}
    alone = {text: (answer.answers[AUTO][0], answer.sources[0]) for text, answer in found.items()}
    return Asked(predictor, alone, {text: answer.usage.windows for text, answer in found.items()})


def test_some_stop_early(asked: Asked) -> None:
    """Of long texts that the estimator is unsure of, some are read to their end and some are not."""
    ensemble = AnswerSource.ENSEMBLE
    read = {asked.windows[text] for text, (_, source) in asked.alone.items() if source is ensemble}
    assert {1, 4} <= read


def test_same_bits_in_company(asked: Asked) -> None:
    """Together, beside a named head and from many threads, each text has the answer that it has alone."""
    texts = list(asked.alone)
    together = asked.predictor.predict(texts, [AUTO])
    beside = asked.predictor.predict(texts, ["logreg", AUTO], use_cache=False)
    for found in (together, beside):
        assert list(zip(found.answers[AUTO], found.sources, strict=True)) == list(asked.alone.values())
    asked.predictor.embed(texts[:10])
    with ThreadPoolExecutor(THREADS) as threads:
        answers = list(threads.map(lambda text: asked.predictor.predict([text], [AUTO], False), texts))
    got = [(found.answers[AUTO][0], found.sources[0]) for found in answers]
    assert got == list(asked.alone.values())


def test_embeddings_are_of_all_windows(bundle: Path, asked: Asked) -> None:
    """What `auto` read of a text leaves no trace in its embedding."""
    texts = list(asked.alone)
    asked.predictor.predict(texts, [AUTO])
    at_once = load_predictor(Settings(model_dir=bundle, models=EXAMPLE))
    assert asked.predictor.embed(texts).vectors == at_once.embed(texts).vectors


def test_rule_holds_with_fewer_windows(bundle: Path, asked: Asked) -> None:
    """With at most two windows a text that is settled after its first one is read no further either."""
    predictor = reading_early(bundle, max_windows=2)
    texts = [text for text, windows in asked.windows.items() if windows > 0]
    read = {predictor.predict([text], [AUTO], use_cache=False).usage.windows for text in texts}
    assert read <= {0, 1, 2}
    assert {1, 2} <= read
