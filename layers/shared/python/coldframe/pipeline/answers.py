"""Results of a request: predictions or embeddings, with their cost and times."""

from msgspec import Struct, field

from coldframe.cache.cache import Unsaved
from coldframe.model.estimator import AnswerSource
from coldframe.schemas import Usage
from coldframe.timing import StageTimes
from coldframe.vectors import Vector


class Encoded(Struct, frozen=True):
    """Embeddings by text, cached ones and `fresh` ones, and the encoder's work.

    `vectors` lacks texts for which there was no time. settled: long texts that `auto` answers from their
    windows.
    """

    vectors: dict[str, Vector] = field(default_factory=dict)
    fresh: dict[str, Vector] = field(default_factory=dict)
    tokens: int = 0
    windows: int = 0
    batches: int = 0
    settled: frozenset[str] = frozenset()

    def __add__(self, other: "Encoded") -> "Encoded":
        """The sum of two parts."""
        return Encoded(
            self.vectors | other.vectors,
            self.fresh | other.fresh,
            self.tokens + other.tokens,
            self.windows + other.windows,
            self.batches + other.batches,
            self.settled | other.settled,
        )


class Answered(Struct, frozen=True):
    """Cost of one request's answers, and times of its stages.

    unsaved: values that `PredictionCache.save` writes after the reply is built.
    cache_error: name of the shared cache's error.
    """

    usage: Usage
    times: StageTimes
    unsaved: Unsaved
    cache_error: str | None


class Prediction(Answered, frozen=True):
    """Answers (k + 1,) of each text by head, in input order.

    answers: probabilities (k,), then the out-of-distribution score.
    sources: the part that gave each answer of `auto`, as a head or as a member of `ensemble`; else empty.
    vectors: embeddings by normalised text, of texts that needed one.
    members: of the head `ensemble`, as they took part. is_whole: none was left out.
    """

    answers: dict[str, list[Vector]]
    sources: list[AnswerSource]
    vectors: dict[str, Vector] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    is_whole: bool = True

    @property
    def is_rushed(self) -> bool:
        """Whether more time would have given another answer."""
        return not self.is_whole or any(source.is_rushed for source in self.sources)


class Embedding(Answered, frozen=True):
    """The embedding (d,) of each text, in input order.

    prompt_tokens: tokens of all texts, with repeated texts and texts whose embedding was cached.
    """

    vectors: list[Vector]
    prompt_tokens: int
