"""The encoder's part of a request: texts that need an embedding, and answers from embeddings and guesses."""

from collections.abc import Mapping, Sequence, Sized

from msgspec import Struct, field

from coldframe.errors import OutOfTime, Overloaded
from coldframe.model.encoder import Embedded, TextEncoder
from coldframe.model.estimator import Guess, answer_auto
from coldframe.model.files import AUTO
from coldframe.model.tokenizer import Window
from coldframe.pipeline.answers import Encoded
from coldframe.pipeline.rounds import LongText, rounds_of
from coldframe.schemas import CacheUsage, Usage
from coldframe.timing import Deadline
from coldframe.vectors import Vector


class ToEncode(Struct, frozen=True):
    """Texts of a request that need the encoder.

    windows: of each text without a `cached` embedding. is_required: no text can be answered without it.
    long: texts that `auto` reads in rounds, in `texts` or not. They hold their answers afterwards.
    """

    texts: Sequence[str]
    windows: Mapping[str, Sequence[Window]]
    cached: Mapping[str, Vector]
    is_required: bool
    long: Mapping[str, LongText] = field(default_factory=dict)

    def rows(self) -> list[Sequence[Window]]:
        """Windows of the texts to encode at once."""
        return [self.windows[text] for text in self._at_once()]

    def later(self) -> list[list[Window]]:
        """Windows that the long texts may need, round by round."""
        return rounds_of(self.long.values()) if self.long else []

    def encoded(self, embedded: Embedded) -> Encoded:
        """The embeddings of all texts but the long ones. embedded: result for `rows`."""
        rows = zip(self._at_once(), embedded.vectors, strict=True)
        fresh = {text: row for text, row in rows if row is not None}
        vectors = {text: self.cached[text] for text in self.texts if text in self.cached} | fresh
        return Encoded(vectors, fresh, embedded.tokens, embedded.windows, embedded.batches)

    def check_time(self, encoder: TextEncoder, deadline: Deadline) -> None:
        """Raises OutOfTime if there is too little time for texts that are required."""
        if self.is_required and encoder.expected_s(self._tokens()) > deadline.remaining_s():
            raise OutOfTime(self._no_time(deadline))

    def check_complete(self, encoded: Encoded, embedded: Embedded, deadline: Deadline) -> None:
        """Raises OutOfTime if a required text has no embedding; Overloaded if others took the time."""
        if not self.is_required or len(encoded.vectors) == len(self.texts):
            return
        detail, late_s = self._no_time(deadline), embedded.retry_after_s
        raise OutOfTime(detail) if late_s is None else Overloaded(detail, late_s)

    def _unknown(self) -> list[str]:
        return [text for text in self.texts if text not in self.cached]

    def _at_once(self) -> list[str]:
        return [text for text in self._unknown() if text not in self.long]

    def _tokens(self) -> int:
        return sum(len(row) for text in self._unknown() for row in self.windows[text])

    def _no_time(self, deadline: Deadline) -> str:
        texts, left_s = len(self._unknown()), max(0.0, deadline.remaining_s())
        return (
            f"There are {texts} texts with {self._tokens()} tokens to encode, and {left_s:.2f} s left: too"
            " little. Send fewer texts at once, raise the function's timeout or `budget_ms`,"
            " or request the head `auto` alone: it can answer without the encoder."
        )


def combined(
    rows: Mapping[str, Mapping[str, Vector]],
    heads: Sequence[str],
    partner: str,
    guesses: Mapping[str, Guess],
    long: Mapping[str, LongText],
) -> dict[tuple[str, str], Vector]:
    """Answers by (head, text): by `heads` for encoded texts, by `auto` for texts with a guess.

    rows: answers by head and text, with those of the partner head if a guess is not sure.
    """
    answers = {(head, text): row for head in heads for text, row in rows[head].items()}
    for text, guess in guesses.items():
        if text in long:
            answers[AUTO, text] = long[text].final_answer
        else:
            answers[AUTO, text] = answer_auto(guess, None if guess.sure else rows[partner].get(text))
    return answers


def usage_of(encoded: Encoded, texts: Sized, unique: Sized, estimated: int, cache: CacheUsage) -> Usage:
    """Usage of an answer with these embeddings."""
    return Usage(
        texts=len(texts),
        unique=len(unique),
        estimated=estimated,
        tokens=encoded.tokens,
        padded_tokens=encoded.tokens,  # rows of a batch have one length: nothing is padded
        windows=encoded.windows,
        batches=encoded.batches,
        cache=cache,
    )
