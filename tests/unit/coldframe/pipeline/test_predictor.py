"""The road of a request, over an encoder without a model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.errors import BundleCorrupt, Invalid, OutOfTime
from coldframe.model.estimator import AnswerSource
from coldframe.model.files import AUTO
from coldframe.model.tokenizer import normalise
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import Deadline
from coldframe.vectors import to_floats
from coldframe_training.embeddings.matrices import to_matrix
from tests.conftest import TinyEncoder, TinyHead, tiny_predictor

texts_to_classify = st.lists(st.text("ab é\n", max_size=12), min_size=1, max_size=12)
HEADS = ["first", "second"]


@given(texts_to_classify)
def test_together_as_alone(texts: list[str]) -> None:
    """A text gets the same answer, to the bit, in company and alone."""
    together = tiny_predictor().predict(texts, HEADS)
    for index, text in enumerate(texts):
        alone = tiny_predictor().predict([text], HEADS)
        for head in HEADS:
            assert together.answers[head][index] == alone.answers[head][0]


@given(texts_to_classify, texts_to_classify)
def test_cache_changes_no_answer(first: list[str], second: list[str]) -> None:
    """Answers are the same, to the bit, with a cold cache, a warm one, and none."""
    caching, plain = tiny_predictor(), tiny_predictor(cache_bytes=0)
    for texts in (first, second, first):
        expected = plain.predict(texts, HEADS).answers["first"]
        assert caching.predict(texts, HEADS).answers["first"] == expected
        bypassing = caching.predict(texts, HEADS, use_cache=False)
        assert bypassing.answers["first"] == expected
        assert bypassing.usage.cache.l1 == 0


def test_equal_texts_are_encoded_once() -> None:
    """Texts that are equal after normalisation cost one tokenization and one row."""
    encoder = TinyEncoder()
    prediction = tiny_predictor(encoder).predict(["a b", " a  b\n", "c", "a b"], ["first"])
    assert encoder.tokenized == ["a b", "c"]
    assert (prediction.usage.texts, prediction.usage.unique, prediction.usage.windows) == (4, 2, 2)
    assert len(prediction.answers["first"]) == 4


def test_all_heads_share_one_encoding() -> None:
    """Two heads cost as many forward passes as one."""
    one, two = TinyEncoder(), TinyEncoder()
    tiny_predictor(one).predict(["a", "bc"], ["first"])
    prediction = tiny_predictor(two).predict(["a", "bc"], HEADS)
    assert two.batches == one.batches
    assert prediction.usage.batches == len(two.batches)
    assert prediction.usage.cache.miss == 4


def test_second_time_from_the_cache() -> None:
    """A text asked for again is neither tokenized nor encoded."""
    encoder = TinyEncoder()
    predictor = tiny_predictor(encoder)
    predictor.predict(["a", "b"], ["first"])
    asked_before = list(encoder.tokenized)
    usage = predictor.predict(["b", "a"], ["first"]).usage
    assert encoder.tokenized == asked_before
    assert (usage.cache.l1, usage.cache.miss, usage.tokens, usage.batches) == (2, 0, 0, 0)


def test_tokens_are_counted() -> None:
    """Tokens are those of all windows, and no padding is added to them."""
    usage = tiny_predictor().predict(["abcdef", "x"], ["first"]).usage  # windows of 6, 4 and 3 tokens
    assert (usage.tokens, usage.padded_tokens, usage.windows) == (13, 13, 3)


def test_a_head_is_read_once() -> None:
    """A head is read from the bundle when it is first asked for, and then kept."""
    read: list[str] = []

    def read_head(name: str) -> TinyHead:
        read.append(name)
        return TinyHead()

    predictor = tiny_predictor(read_head=read_head)
    assert read == []
    predictor.predict(["a"], ["second"])
    predictor.predict(["b"], ["second"])
    assert read == ["second"]


def test_rows_are_probabilities() -> None:
    """Every row sums to one and is finite, also for the empty text."""
    rows = to_matrix(tiny_predictor().predict(["", "a"], ["first"]).answers["first"])[:, :-1]
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)


def test_stages_are_in_order() -> None:
    """The stages are those of the road."""
    times = tiny_predictor().predict(["a"], ["first"]).times
    assert list(times.stages_ms) == ["cache", "tokenize", "estimate", "encode", "heads"]


def test_lone_surrogates_are_refused() -> None:
    """What is not Unicode is refused by name instead of breaking the tokenizer."""
    with pytest.raises(Invalid, match="lone surrogate"):
        tiny_predictor().predict(["\ud800"], ["first"])


@given(st.text())
def test_normalise_is_idempotent(text: str) -> None:
    """Normalising twice is normalising once."""
    assert normalise(normalise(text)) == normalise(text)


class TickingClock:
    """A clock that goes on by a fixed time whenever it is read."""

    def __init__(self, step_s: float) -> None:
        self.step_s, self.now_s = step_s, 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def short(limit_s: float = 1.0) -> Deadline:
    """A deadline that every look at the clock brings a tenth of a second nearer."""
    return Deadline(limit_s, TickingClock(0.1))


def loaded(encoder: TinyEncoder | None = None, seconds_per_pass: float = 0.0) -> Predictor:
    return tiny_predictor(encoder, clock=TickingClock(seconds_per_pass))


def test_no_time_no_encoder() -> None:
    """Without time for the encoder `auto` is the guess, marked where it is unsure, and then not kept."""
    encoder = TinyEncoder()
    predictor = loaded(encoder)
    prediction = predictor.predict(["ab", "a"], [AUTO], deadline=Deadline(0))
    assert prediction.sources == [AnswerSource.ESTIMATOR, AnswerSource.RUSHED]
    np.testing.assert_allclose(to_floats(prediction.answers[AUTO][1]), [0.2, 0.3, 0.5, 0.25], atol=1e-6)
    assert (encoder.batches, prediction.usage.estimated) == ([], 2)
    later = predictor.predict(["ab", "a"], [AUTO])
    assert later.sources == [AnswerSource.ESTIMATOR, AnswerSource.ENSEMBLE]
    assert (later.usage.cache.l1, later.usage.cache.miss) == (1, 1)


def test_time_for_some() -> None:
    """As many texts are encoded as the time allows, the short ones first."""
    predictor = loaded(seconds_per_pass=2.0)
    texts = ["a", "abc", "abcde"]  # all unsure; of one, one and two windows
    prediction = predictor.predict(texts, [AUTO], deadline=short(1.3))
    assert [source is AnswerSource.RUSHED for source in prediction.sources] == [False, False, True]
    whole = loaded().predict(texts, [AUTO])
    assert prediction.answers[AUTO][:2] == whole.answers[AUTO][:2]


@pytest.mark.parametrize("texts", [["a"], ["a" * 20, "b" * 20]])
def test_named_heads_fail_early(texts: list[str]) -> None:
    """A head that needs the encoder fails by name when the time is too short; nothing is encoded in vain."""
    encoder = TinyEncoder()
    with pytest.raises(OutOfTime, match="too little"):
        loaded(encoder).predict(texts, ["first", AUTO], deadline=Deadline(0))
    assert encoder.batches == []
    with pytest.raises(OutOfTime):
        loaded(encoder).embed(texts, Deadline(0))


def test_named_heads_fail_on_the_way() -> None:
    """So they do when encoding takes longer than it did so far."""
    with pytest.raises(OutOfTime):
        loaded(seconds_per_pass=100.0).predict(["a", "abc", "abcde"], ["first"], deadline=short())


def test_broken_model_is_told() -> None:
    """A model that cannot be loaded is an error for who needs it, and for nobody else."""

    def read_head(name: str) -> TinyHead:
        raise BundleCorrupt("broken")

    predictor = tiny_predictor(read_head=read_head)
    assert predictor.predict(["ab"], [AUTO]).sources == [AnswerSource.ESTIMATOR]
    for _ in range(2):
        with pytest.raises(BundleCorrupt, match="broken"):
            predictor.predict(["a"], [AUTO])


def test_known_embeddings_are_not_computed_again() -> None:
    """Embeddings come from the cache, where a prediction may have left them."""
    encoder = TinyEncoder()
    predictor = tiny_predictor(encoder)
    predictor.predict(["a", "bc"], ["first"])
    passes = len(encoder.batches)
    embedded = predictor.embed(["bc", "a", "new", "a"])
    assert len(encoder.batches) == passes + 1
    assert embedded.vectors == tiny_predictor(cache_bytes=0).embed(["bc", "a", "new", "a"]).vectors
    assert (embedded.usage.cache.embedding, embedded.usage.cache.miss) == (2, 1)
    assert embedded.prompt_tokens == 4 + 3 + 5 + 3


def test_deadline_covers_the_estimator() -> None:
    """When a deadline is over, the estimator does not go on with the texts that are left."""
    clock = iter(range(1000))
    with pytest.raises(OutOfTime):
        tiny_predictor().predict(
            [str(i) for i in range(500)], [AUTO], deadline=Deadline(100, lambda: next(clock))
        )
    assert next(clock) < 120
