"""Models that share an encoder share its work, and nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coldframe.cache.cache import PredictionCache
from coldframe.cache.policy import Policy
from coldframe.model.encoder import Embeddings
from coldframe.model.files import AUTO
from coldframe.model.heads import Head, Probabilities
from coldframe.pipeline.models import Models
from coldframe.pipeline.predictor import Predictor
from tests.conftest import (
    TinyEncoder,
    TinyHead,
    sealed,
    tiny_encoder_manifest,
    tiny_manifest,
    tiny_predictor,
)
from tests.unit.coldframe.cache.test_cache import two_levels
from tests.unit.coldframe.cache.test_dynamodb_store import FakeTable, FakeTime

FIRST, SECOND = "topics", "queues"
HEADS = ["first", "second"]
TEXTS = ["a", "b c", "defg hi"]
RETRAINED = sealed(replace(tiny_manifest(), default_head="second"))


class OtherHead:
    """What a model answers that was trained on other labels."""

    def predict(self, embeddings: Embeddings) -> Probabilities:
        turned: Probabilities = TinyHead().predict(embeddings)[:, ::-1]
        return turned


def other_head(name: str) -> Head:
    return OtherHead()


def pair(encoder: TinyEncoder, cache: PredictionCache) -> list[Predictor]:
    """Two models on one encoder, with one cache."""
    one = tiny_predictor(encoder, cache=cache, name=FIRST)
    return [one, tiny_predictor(encoder, other_head, cache=cache, name=SECOND)]


@pytest.mark.parametrize("heads", [["first"], HEADS])
def test_text_asked_of_two_models_is_encoded_once(heads: list[str]) -> None:
    """The second model answers from the embedding that the first left, without tokens or passes."""
    encoder = TinyEncoder()
    one, other = pair(encoder, PredictionCache(1 << 20))
    assert one.predict(TEXTS, heads).usage.tokens > 0
    passes = len(encoder.batches)
    usage = other.predict(TEXTS, heads).usage
    assert (usage.tokens, usage.batches, len(encoder.batches)) == (0, 0, passes)
    assert (usage.cache.embedding, usage.cache.l1) == (len(TEXTS) * len(heads), 0)
    assert other.embed(TEXTS).usage.tokens == 0


def test_models_on_two_encoders_share_nothing() -> None:
    """An embedding is never found under another encoder, nor under another version of the same."""
    cache = PredictionCache(1 << 20)
    tiny_predictor(cache=cache).predict(TEXTS, HEADS)
    for built in (tiny_encoder_manifest("other"), tiny_encoder_manifest().with_windows(2)):
        usage = tiny_predictor(cache=cache, encoder_manifest=built).predict(TEXTS, HEADS).usage
        assert (usage.cache.miss, usage.cache.embedding) == (len(TEXTS) * len(HEADS), 0)


@pytest.mark.parametrize("shared", [False, True])
def test_retraining_keeps_the_embeddings(shared: bool) -> None:
    """Another version of a model encodes no text again, here or in a fresh environment with the table."""
    table, time = FakeTable([]), FakeTime()
    cache = two_levels(table, time, Policy.ALWAYS, 1 << 20)
    before = tiny_predictor(cache=cache)
    cache.save(before.predict(TEXTS, HEADS).unsaved)
    if shared:
        cache = two_levels(table, time, Policy.ALWAYS, 1 << 20)
    after = tiny_predictor(cache=cache, manifest=RETRAINED)
    assert after.manifest.version != before.manifest.version
    usage = after.predict(TEXTS, HEADS).usage
    assert (usage.tokens, usage.batches) == (0, 0)
    assert (usage.cache.embedding, usage.cache.l1, usage.cache.l2) == (len(TEXTS) * len(HEADS), 0, 0)


requests = st.lists(
    st.tuples(
        st.integers(0, 1),  # which of two environments
        st.integers(0, 1),  # which of two models
        st.lists(st.sampled_from(["a", "b c", "d", "e", "f"]), min_size=1, max_size=6),
        st.lists(st.sampled_from([*HEADS, AUTO]), min_size=1, max_size=3, unique=True),
    ),
    max_size=10,
)


@settings(deadline=None)
@given(requests, st.sampled_from(Policy), st.sampled_from([0, 900, 1 << 20]))
def test_no_prediction_of_another_model(
    asked: list[tuple[int, int, list[str], list[str]]], policy: Policy, l1_bytes: int
) -> None:
    """Whatever was asked of the other model, here or elsewhere, a model's answers are its own to the bit."""
    table, time = FakeTable([]), FakeTime()
    environments = [pair(TinyEncoder(), two_levels(table, time, policy, l1_bytes)) for _ in range(2)]
    plain = pair(TinyEncoder(), PredictionCache(0))
    for environment, model, texts, heads in asked:
        predictor = environments[environment][model]
        prediction = predictor.predict(texts, heads)
        expected = plain[model].predict(texts, heads, use_cache=False).answers
        assert prediction.answers == expected
        assert prediction.usage.cache.corrupt == 0
        predictor.cache.save(prediction.unsaved)


def test_each_model_is_made_once() -> None:
    """Threads that are the first to ask for a model get the same one; the default is the first."""
    made: list[str] = []
    gate = threading.Barrier(8)

    def make(name: str) -> Predictor:
        made.append(name)
        return tiny_predictor(name=name)

    models = Models({FIRST: lambda: make(FIRST), SECOND: lambda: make(SECOND)})
    assert (models.names, made) == ([FIRST, SECOND], [FIRST])

    def ask(number: int) -> Predictor:
        gate.wait()
        return models.get(models.names[number % 2])

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(ask, range(8)))
    assert sorted(made) == sorted(models.names)
    assert {id(predictor) for predictor in found} == {id(predictor) for predictor in models.all()}
    assert models.default is models.get(FIRST)
