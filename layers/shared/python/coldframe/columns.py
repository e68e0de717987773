"""Columns of texts from tables: one answer per row, None for a row without a text.

Tables, unlike requests, have rows without a text, and many rows with equal texts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from coldframe.errors import OutOfTime
from coldframe.model.estimator import AnswerSource, sources_of
from coldframe.pipeline.answers import Prediction
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import NO_DEADLINE, Deadline
from coldframe.vectors import Vector, ranked, to_floats

T = TypeVar("T")

TEXTS_AT_ONCE = 4096
"""Distinct texts of one prediction: enough of each length to fill passes, few enough for any memory."""


class Answer(NamedTuple):
    """Answer of one head for one text.

    label: None where the head abstains. scores: the probability of each label, in the manifest's order.
    source: the part that answered for `auto`, as a head or as a member of `ensemble`; None for other heads.
    """

    label: str | None
    probability: float
    out_of_distribution: float
    scores: tuple[float, ...]
    source: AnswerSource | None


Answers = dict[str, list[Answer | None]]
"""Answers by head, one per row; None for a row without a text."""


def predict_column(
    predictor: Predictor,
    texts: Sequence[str | None],
    heads: Sequence[str],
    use_cache: bool = True,
    deadline: Deadline = NO_DEADLINE,
) -> Answers:
    """Answers of each row by each of `heads`. Raises the errors of `Predictor.predict`."""
    answers: dict[str, dict[str, Answer]] = {head: {} for head in heads}
    for part in _parts(distinct(texts)):
        prediction = predictor.predict(part, heads, use_cache, deadline)
        for head in heads:
            answers[head].update(zip(part, _answers(predictor, prediction, head), strict=True))
        predictor.cache.save(prediction.unsaved, deadline.remaining_s())
    return {head: spread(texts, answers[head]) for head in heads}


def embed_column(
    predictor: Predictor, texts: Sequence[str | None], deadline: Deadline = NO_DEADLINE
) -> list[Vector | None]:
    """The embedding of each row. Raises the errors of `Predictor.embed`."""
    embeddings: dict[str, Vector] = {}
    for part in _parts(distinct(texts)):
        embedding = predictor.embed(part, deadline)
        embeddings.update(zip(part, embedding.vectors, strict=True))
        predictor.cache.save(embedding.unsaved, deadline.remaining_s())
    return spread(texts, embeddings)


def refuse_rushed(answers: Iterable[Answer | None]) -> None:
    """Raises OutOfTime for an answer given for lack of time: a repeated query could get another answer."""
    sources = (answer.source for answer in answers if answer is not None)
    rushed = sum(source is not None and source.is_rushed for source in sources)
    if rushed:
        raise OutOfTime(f"There was no time to encode {rushed} of the rows. Send fewer rows at once.")


def distinct(texts: Sequence[str | None]) -> list[str]:
    """The texts without repetitions, in the order of their first rows."""
    return [text for text in dict.fromkeys(texts) if text is not None]


def spread(texts: Sequence[str | None], values: Mapping[str, T]) -> list[T | None]:
    """The value of each row's text; None for a row without one."""
    return [None if text is None else values[text] for text in texts]


def _parts(texts: list[str]) -> Iterator[list[str]]:
    rest = iter(texts)
    while part := list(islice(rest, TEXTS_AT_ONCE)):
        yield part


def _answers(predictor: Predictor, prediction: Prediction, head: str) -> Iterator[Answer]:
    labels, least = predictor.manifest.labels, predictor.min_probability[head]
    rows = prediction.answers[head]
    sources = sources_of(head, len(rows), prediction.sources, prediction.members)
    for row, source in zip(rows, sources, strict=True):
        *scores, strangeness = to_floats(row)
        best = ranked(scores)[0]
        label = None if scores[best] < least else labels[best]
        yield Answer(label, scores[best], strangeness, tuple(scores), source)
