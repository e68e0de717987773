"""The head `auto`: estimator first, ensemble where it is unsure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.model.estimator import AnswerSource, Guess, answer_auto, mean_with, split_answers, temper
from coldframe.model.files import AUTO
from coldframe.pipeline.predictor import Predictor
from coldframe.vectors import to_floats, to_vector
from tests.conftest import TinyEncoder, tiny_predictor

SURE, UNSURE = "ab", "a"  # TinyEstimator is sure of texts with an even number of tokens


def test_sure_texts_skip_the_encoder() -> None:
    """A text that the estimator is sure of is neither encoded nor asked of a head."""
    encoder = TinyEncoder()
    prediction = tiny_predictor(encoder).predict([SURE, UNSURE], [AUTO])
    assert prediction.sources == [AnswerSource.ESTIMATOR, AnswerSource.ENSEMBLE]
    assert sum(map(len, encoder.batches)) == 1
    assert (prediction.usage.estimated, prediction.usage.windows) == (1, 1)
    np.testing.assert_allclose(to_floats(prediction.answers[AUTO][0]), [0.8, 0.1, 0.1, 0.25], atol=1e-6)


def test_unsure_texts_get_the_mean() -> None:
    """An unsure text has the geometric mean of guess and partner head, and the score of its embedding."""
    predictor = tiny_predictor()
    prediction = predictor.predict([UNSURE], [AUTO, "second"])
    *partner, score = to_floats(prediction.answers["second"][0])
    mean = np.sqrt((np.array([0.2, 0.3, 0.5]) + 0.001) * (np.array(partner) + 0.001))
    expected = [*mean / mean.sum(), score]
    np.testing.assert_allclose(to_floats(prediction.answers[AUTO][0]), expected, atol=1e-6)


def test_named_heads_never_use_it() -> None:
    """A named head answers every text itself, also one that the estimator is sure of."""
    encoder = TinyEncoder()
    prediction = tiny_predictor(encoder).predict([SURE], ["first"])
    assert prediction.sources == []
    assert prediction.usage.estimated == 0
    assert sum(map(len, encoder.batches)) == 1


texts_to_classify = st.lists(st.text("ab c", max_size=9), min_size=1, max_size=10)


@given(texts_to_classify, texts_to_classify)
def test_company_and_cache_change_nothing(first: list[str], second: list[str]) -> None:
    """`auto` gives the same answer by the same source alone, in company, and from the cache."""
    caching = tiny_predictor()
    for texts in (first, second, first):
        prediction = caching.predict(texts, [AUTO])
        for index, text in enumerate(texts):
            alone = tiny_predictor(cache_bytes=0).predict([text], [AUTO])
            assert alone.answers[AUTO][0] == prediction.answers[AUTO][index]
            assert alone.sources[0] == prediction.sources[index]


def test_rows_keep_their_source() -> None:
    """Who gave an answer survives its form in the cache."""
    rows = [
        answer_auto(Guess([0.6, 0.4], True, 0.1), None),
        answer_auto(Guess([0.5, 0.5], False, 0.1), to_vector([0.8, 0.2, 0.9])),
        answer_auto(Guess([0.5, 0.5], False, 0.1), None),
    ]
    answers, sources = split_answers({AUTO: rows})
    found = [to_floats(answer) for answer in answers[AUTO]]
    np.testing.assert_allclose(found, [[0.6, 0.4, 0.1], [2 / 3, 1 / 3, 0.9], [0.5, 0.5, 0.1]], atol=1e-3)
    assert sources == [AnswerSource.ESTIMATOR, AnswerSource.ENSEMBLE, AnswerSource.RUSHED]


def test_temperatures_of_answers() -> None:
    """An answer has the temperature of who gives it; without any, it is what it was before there were any."""
    guess = Guess([0.5, 0.3, 0.2], True, 0.1, (0.5, 2.0))
    alone, together = (
        to_floats(answer_auto(guess, partner)[1:])[:-1] for partner in (None, to_vector([0.5, 0.3, 0.2, 0.9]))
    )
    np.testing.assert_allclose(alone, np.square([0.5, 0.3, 0.2]) / 0.38, atol=1e-6)
    roots = np.sqrt(mean_with(guess, [0.5, 0.3, 0.2]))
    np.testing.assert_allclose(together, roots / roots.sum(), atol=1e-6)
    bare = guess._replace(temperatures=(1.0, 1.0))
    assert to_floats(answer_auto(bare, None)[1:]) == to_floats(to_vector([0.5, 0.3, 0.2, 0.1]))


@given(st.lists(st.floats(1e-9, 1), min_size=2, max_size=9), st.floats(0.2, 2))
def test_temperature_keeps_the_order(weights: list[float], temperature: float) -> None:
    """Probabilities at any temperature sum to 1, and none overtakes another."""
    shares = [weight / sum(weights) for weight in weights]
    tempered = temper(shares, temperature)
    assert sum(tempered) == pytest.approx(1)
    order = np.argsort(shares, kind="stable")
    assert np.all(np.diff(np.array(tempered)[order]) >= 0)


def test_both_sources_on_the_real_model(predictor: Predictor) -> None:
    """Of plain sentences some are answered by the estimator, and no label is lost on the way."""
    texts = [
        "NASA launched the shuttle into orbit around the moon",
        "What a nice day",
        "Window manager for X11",
    ]
    prediction = predictor.predict(texts, [AUTO], use_cache=False)
    assert {source.by for source in prediction.sources} == {"estimator", "ensemble"}
    for answer in prediction.answers[AUTO]:
        assert sum(to_floats(answer)[:-1]) == pytest.approx(1, abs=1e-5)
