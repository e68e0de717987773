"""The road of a request, over an encoder without a model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.errors import Invalid
from coldframe.model import to_matrix
from coldframe.text import normalise
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
            assert together.probabilities[head][index] == alone.probabilities[head][0]


@given(texts_to_classify, texts_to_classify)
def test_cache_changes_no_answer(first: list[str], second: list[str]) -> None:
    """Answers are the same, to the bit, with a cold cache, a warm one, and none."""
    caching, plain = tiny_predictor(), tiny_predictor(cache_bytes=0)
    for texts in (first, second, first):
        expected = plain.predict(texts, HEADS).probabilities["first"]
        assert caching.predict(texts, HEADS).probabilities["first"] == expected
        bypassing = caching.predict(texts, HEADS, use_cache=False)
        assert bypassing.probabilities["first"] == expected
        assert bypassing.usage.cache.l1 == 0


def test_equal_texts_are_encoded_once() -> None:
    """Texts that are equal after normalisation cost one tokenization and one row."""
    encoder = TinyEncoder()
    prediction = tiny_predictor(encoder).predict(["a b", " a  b\n", "c", "a b"], ["first"])
    assert encoder.tokenized == ["a b", "c"]
    assert (prediction.usage.texts, prediction.usage.unique, prediction.usage.windows) == (4, 2, 2)
    assert len(prediction.probabilities["first"]) == 4


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
    rows = to_matrix(tiny_predictor().predict(["", "a"], ["first"]).probabilities["first"])
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)


def test_stages_are_in_order() -> None:
    """The stages are those of the road."""
    times = tiny_predictor().predict(["a"], ["first"]).times
    assert list(times.stages_ms) == ["cache", "tokenize", "estimate", "load", "encode", "heads"]


def test_lone_surrogates_are_refused() -> None:
    """What is not Unicode is refused by name instead of breaking the tokenizer."""
    with pytest.raises(Invalid, match="lone surrogate"):
        tiny_predictor().predict(["\ud800"], ["first"])


@given(st.text())
def test_normalise_is_idempotent(text: str) -> None:
    """Normalising twice is normalising once."""
    assert normalise(normalise(text)) == normalise(text)
