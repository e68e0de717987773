"""Long texts that `auto` reads window after window, until its answer is settled."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coldframe.model.estimator import AnswerSource, Guess, mean_with
from coldframe.model.files import AUTO
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import Deadline
from coldframe.vectors import to_floats
from tests.conftest import TinyEncoder, tiny_predictor

MARGIN = 0.05
EARLY, MIDDLE, LATE = "aaabaaaaa", "aaaaaaaba", "aaaaaaaaa"
"""Three windows each, of which `auto` reads one, two, and all."""

texts_to_classify = st.lists(st.text("abc", max_size=15), min_size=1, max_size=6)


def anytime(encoder: TinyEncoder | None = None, cache_bytes: int = 1 << 20) -> Predictor:
    return tiny_predictor(encoder, cache_bytes=cache_bytes, settled_margin=MARGIN)


def windows_read(text: str) -> int:
    return anytime().predict([text], [AUTO]).usage.windows


def test_settled_early() -> None:
    """A text costs as many windows as its answer takes to be settled."""
    assert [windows_read(text) for text in (EARLY, MIDDLE, LATE)] == [1, 2, 3]


def test_read_to_its_end() -> None:
    """An answer that is never settled is that of all windows at once."""
    at_once = tiny_predictor().predict([LATE], [AUTO])
    assert anytime().predict([LATE], [AUTO]).answers == at_once.answers


def test_answer_of_some_windows() -> None:
    """An early answer is the mean of the guess and of what the partner says of the windows read."""
    found = anytime().predict([EARLY], [AUTO])
    *partner, score = to_floats(tiny_predictor().predict([EARLY[:4]], ["second"]).answers["second"][0])
    expected = [*mean_with(Guess([0.2, 0.3, 0.5], False, 0.25), partner), score]
    np.testing.assert_allclose(to_floats(found.answers[AUTO][0]), expected, atol=1e-6)
    assert found.sources == [AnswerSource.ENSEMBLE]


@given(texts_to_classify, texts_to_classify)
def test_answer_depends_on_the_text_alone(first: list[str], second: list[str]) -> None:
    """`auto` answers to the bit what it answers alone: in company, beside named heads, from a used cache."""
    caching = anytime()
    caching.embed(first)  # known embeddings change nothing either
    for texts, heads in ((first, [AUTO]), (second, ["first", AUTO]), (first + second, [AUTO, "second"])):
        found = caching.predict(texts, heads)
        for index, text in enumerate(texts):
            alone = anytime(cache_bytes=0).predict([text], [AUTO])
            assert found.answers[AUTO][index] == alone.answers[AUTO][0]
            assert found.sources[index] == alone.sources[0]


@given(texts_to_classify)
def test_named_heads_see_whole_texts(texts: list[str]) -> None:
    """A head asked for by name answers by all windows, also beside `auto`; each window is encoded once."""
    encoder = TinyEncoder()
    found = anytime(encoder).predict(texts, ["first", AUTO])
    plain = tiny_predictor().predict(texts, ["first"])
    assert found.answers["first"] == plain.answers["first"]
    assert found.usage.windows == plain.usage.windows == sum(map(len, encoder.batches))


@given(texts_to_classify)
def test_what_is_incomplete_is_no_embedding(texts: list[str]) -> None:
    """After `auto` has read some windows of texts, their embeddings are those of all windows."""
    predictor = anytime()
    predictor.predict(texts, [AUTO])
    assert predictor.embed(texts).vectors == tiny_predictor().embed(texts).vectors


def test_what_is_complete_is_kept() -> None:
    """The embedding of a text that was read to its end is in the cache; that of another one is not."""
    predictor = anytime()
    predictor.predict([EARLY, LATE], [AUTO])
    usage = predictor.embed([EARLY, LATE]).usage
    assert (usage.cache.embedding, usage.cache.miss, usage.windows) == (1, 1, 3)


def test_rounds_share_passes() -> None:
    """First windows of all long texts share passes, then the second ones of those that go on."""
    encoder = TinyEncoder()
    usage = anytime(encoder).predict([LATE, EARLY, MIDDLE], [AUTO]).usage
    assert [len(batch) for batch in encoder.batches] == [3, 2, 1]
    assert (usage.windows, usage.batches, usage.estimated) == (6, 3, 0)
    assert usage.tokens == sum(len(row) for batch in encoder.batches for row in batch)


def test_no_time_for_the_next_window() -> None:
    """A text that is not settled when the time is over gets the guess, and the guess is not kept."""
    ticks = iter(np.arange(0.0, 1e6, 1e5))  # the first pass takes so long that no other one is begun
    predictor = tiny_predictor(settled_margin=MARGIN, clock=lambda: float(next(ticks)))
    found = predictor.predict([EARLY, LATE], [AUTO], deadline=Deadline(10.0))
    assert found.sources == [AnswerSource.ENSEMBLE, AnswerSource.RUSHED]
    assert (found.usage.windows, found.usage.estimated) == (2, 1)
    assert anytime().predict([EARLY], [AUTO]).answers[AUTO][0] == found.answers[AUTO][0]
    again = predictor.predict([EARLY, LATE], [AUTO])
    assert again.sources == [AnswerSource.ENSEMBLE, AnswerSource.ENSEMBLE]
    assert again.usage.cache.l1 == 1
