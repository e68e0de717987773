"""What the road of a request ends in."""

from msgspec import Struct

from coldframe.api.schemas import Usage
from coldframe.cache.cache import Unsaved
from coldframe.model.estimator import AnswerSource
from coldframe.timing import StageTimes
from coldframe.vectors import Vector


class Prediction(Struct, frozen=True):
    """Probabilities (k,) of each text by head, in input order; what they cost; where the time went.

    sources: who gave each answer of the head `auto`; empty when `auto` was not asked.
    unsaved: what `PredictionCache.save` is to write, once the reply is built.
    cache_error: name of what went wrong in the shared cache, for the log.
    """

    probabilities: dict[str, list[Vector]]
    sources: list[AnswerSource]
    usage: Usage
    times: StageTimes
    unsaved: Unsaved
    cache_error: str | None


class Embedding(Struct, frozen=True):
    """The embedding (d,) of each text, in input order; what they cost; where the time went.

    prompt_tokens: of all texts, also of repeated texts and of those whose embedding was cached.
    unsaved, cache_error: as of `Prediction`.
    """

    vectors: list[Vector]
    prompt_tokens: int
    usage: Usage
    times: StageTimes
    unsaved: Unsaved
    cache_error: str | None
