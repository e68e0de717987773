"""What the road of a request ends in."""

from msgspec import Struct, field

from coldframe.cache.cache import Unsaved
from coldframe.model.estimator import AnswerSource
from coldframe.schemas import Usage
from coldframe.timing import StageTimes
from coldframe.vectors import Vector


class Encoded(Struct, frozen=True):
    """Embeddings by text, known ones and `fresh` ones, and what the encoder was run for.

    `vectors` lacks a text that there was no time for. settled: long texts that `auto` has an answer for.
    """

    vectors: dict[str, Vector] = field(default_factory=dict)
    fresh: dict[str, Vector] = field(default_factory=dict)
    tokens: int = 0
    windows: int = 0
    batches: int = 0
    settled: frozenset[str] = frozenset()

    def __add__(self, other: "Encoded") -> "Encoded":
        """Both together."""
        return Encoded(
            self.vectors | other.vectors,
            self.fresh | other.fresh,
            self.tokens + other.tokens,
            self.windows + other.windows,
            self.batches + other.batches,
            self.settled | other.settled,
        )


class Answered(Struct, frozen=True):
    """What the answers of one request cost, and where the time went.

    unsaved: what `PredictionCache.save` is to write, once the reply is built.
    cache_error: name of what went wrong in the shared cache.
    """

    usage: Usage
    times: StageTimes
    unsaved: Unsaved
    cache_error: str | None


class Prediction(Answered, frozen=True):
    """Answers (k + 1,) of each text by head, in input order.

    answers: probabilities (k,), then the out-of-distribution score.
    sources: who gave each answer of the head `auto`; empty when `auto` was not asked.
    """

    answers: dict[str, list[Vector]]
    sources: list[AnswerSource]


class Embedding(Answered, frozen=True):
    """The embedding (d,) of each text, in input order.

    prompt_tokens: of all texts, also of repeated texts and of those whose embedding was cached.
    """

    vectors: list[Vector]
    prompt_tokens: int
