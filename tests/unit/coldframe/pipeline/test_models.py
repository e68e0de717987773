"""Models that share an encoder share its work, and nothing else."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coldframe.cache.cache import PredictionCache
from coldframe.cache.policy import Policy
from coldframe.errors import BundleCorrupt
from coldframe.model.files import AUTO
from coldframe.model.heads import Head
from coldframe.pipeline.models import Models
from coldframe.pipeline.predictor import Predictor
from coldframe.vectors import Vector, to_floats, to_vector
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

    def predict(self, embeddings: Sequence[Vector]) -> list[Vector]:
        return [to_vector(reversed(to_floats(row))) for row in TinyHead().predict(embeddings)]


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


def test_a_broken_model_breaks_no_other() -> None:
    """Who asks for a model that could not be loaded gets its error, each time; the default one must load."""
    models = Models({FIRST: tiny_predictor(name=FIRST), SECOND: BundleCorrupt("estimator.bin has 5 bytes.")})
    assert models.default is models.get(FIRST)
    for _ in range(2):
        with pytest.raises(BundleCorrupt, match=r"estimator\.bin has 5 bytes"):
            models.get(SECOND)
    with pytest.raises(BundleCorrupt):
        models.all()
    with pytest.raises(BundleCorrupt):
        Models({FIRST: BundleCorrupt("estimator.bin has 5 bytes.")})
