"""Answers of `auto` from fewer windows: marked, not kept, not counted."""

from collections.abc import Sequence

from coldframe.model.encoder import Embedded, TextEncoder
from coldframe.model.estimator import AnswerSource, is_lasting
from coldframe.model.files import AUTO
from coldframe.model.model import Model
from coldframe.model.tokenizer import Window
from coldframe.pipeline.observer import Observer
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import Deadline
from coldframe.vectors import to_vector
from tests.conftest import tiny_predictor

MARGIN = 0.05
EARLY, LATE = "aaabaaaaa", "aaaaaaaaa"
"""Three windows each, of which `auto` reads one, and all."""
NO_LIMIT = float("inf")


class FirstRoundOnly(TextEncoder):
    """An encoder of a busy server: each request gets one round."""

    def embed(
        self,
        texts: Sequence[Sequence[Window]],
        deadline: Deadline,
        later: Sequence[Sequence[Window]] = (),
    ) -> Embedded:
        done = super().embed(texts, deadline, later)
        return done._replace(is_last=deadline.may_rush and bool(texts))


def busy(cache_bytes: int = 1 << 20) -> Predictor:
    predictor = tiny_predictor(cache_bytes=cache_bytes, settled_margin=MARGIN)
    alone = predictor.model.encoder
    encoder = FirstRoundOnly(alone.row_encoder, alone.max_batch_tokens, alone.ms_per_token)
    predictor.model = Model(encoder, predictor.model.heads)
    return predictor


def rush() -> Deadline:
    return Deadline(NO_LIMIT, may_rush=True)


def test_an_answer_from_the_first_window() -> None:
    """It comes from one window, says that it was rushed, and differs from the answer of all windows."""
    prediction = busy().predict([LATE], [AUTO], deadline=rush())
    assert prediction.sources == [AnswerSource.RUSHED_ENSEMBLE]
    assert (prediction.sources[0].by, prediction.sources[0].is_rushed) == ("ensemble", True)
    assert prediction.usage.windows == 1
    assert prediction.usage.estimated == 0
    assert prediction.answers != busy().predict([LATE], [AUTO]).answers


def test_a_settled_answer_is_not_rushed() -> None:
    """A text that needs one window has its lasting answer, to the bit."""
    prediction = busy().predict([EARLY], [AUTO], deadline=rush())
    assert prediction.sources == [AnswerSource.ENSEMBLE]
    assert prediction.answers == busy().predict([EARLY], [AUTO]).answers


def test_nothing_changes_unless_it_may() -> None:
    """A request that does not accept less work reads all windows."""
    prediction = busy().predict([LATE], [AUTO])
    assert prediction.sources == [AnswerSource.ENSEMBLE]
    assert prediction.usage.windows == 3


def test_a_rushed_answer_is_not_kept() -> None:
    """The text is read completely when there is time again, and then its answer is kept."""
    predictor = busy()
    predictor.predict([LATE], [AUTO], deadline=rush())
    whole = predictor.predict([LATE], [AUTO])
    assert whole.sources == [AnswerSource.ENSEMBLE]
    assert whole.usage.cache.l1 == 0
    assert predictor.predict([LATE], [AUTO], deadline=rush()).usage.cache.l1 == 1


def test_rushed_sources_do_not_last() -> None:
    """Of all sources, the two rushed ones are not kept by the cache."""
    lasting = [source for source in AnswerSource if is_lasting(AUTO, bytes([source]) + to_vector([1.0, 0.0]))]
    assert lasting == [AnswerSource.ESTIMATOR, AnswerSource.ENSEMBLE]


def test_rushed_answers_are_not_counted() -> None:
    """The monitor's observer counts a whole answer, and no rushed one."""
    predictor = busy(cache_bytes=0)
    counting = (predictor.count_unknown, predictor.tokenizer.count_fragments)
    predictor.observer = Observer(predictor.manifest, predictor.encoder, *counting, lambda: 0.0)
    counts = predictor.observer._recorder._counts
    predictor.predict([LATE], [AUTO], deadline=rush())
    assert counts.texts == 0
    predictor.predict([LATE], [AUTO])
    assert counts.texts == 1
