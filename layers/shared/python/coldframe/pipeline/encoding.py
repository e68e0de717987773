"""The encoder's part of a request: texts that need it, their embeddings, and the answers from them."""

from collections.abc import Mapping, Sequence, Sized

from msgspec import Struct

from coldframe.errors import OutOfTime, Overloaded
from coldframe.model.bundle import EstimatorFacts
from coldframe.model.encoder import Embedded, TextEncoder
from coldframe.model.estimator import Guess, answer_auto
from coldframe.model.files import AUTO
from coldframe.model.model import Model
from coldframe.model.tokenizer import Window
from coldframe.pipeline.answers import Encoded
from coldframe.pipeline.rounds import IsSettled, LongText, find_long, read_in_rounds, rounds_of
from coldframe.schemas import CacheUsage, Usage
from coldframe.timing import Deadline, StageTimes
from coldframe.vectors import Vector


class ToEncode(Struct, frozen=True):
    """Texts of a request that need the encoder, and how they are answered.

    windows: of each text without a `cached` embedding. is_required: no text can be answered without it.
    heads: answer all texts. guesses: the estimator's, for answers of `auto` with the `partner` head.
    long: texts that `auto` reads in rounds, in `texts` or not. They hold their answers afterwards.
    """

    texts: Sequence[str]
    windows: Mapping[str, Sequence[Window]]
    cached: Mapping[str, Vector]
    is_required: bool
    heads: Sequence[str] = ()
    partner: str = ""
    guesses: Mapping[str, Guess] = {}
    long: Mapping[str, LongText] = {}

    def rows(self) -> list[Sequence[Window]]:
        """Windows of the texts to encode at once."""
        return [self.windows[text] for text in self._at_once()]

    def later(self) -> list[list[Window]]:
        """Windows that the long texts may need, round by round."""
        return rounds_of(self.long.values()) if self.long else []

    def encoded(
        self,
        embedded: Embedded,
        model: Model,
        is_settled: IsSettled,
        deadline: Deadline,
        times: StageTimes,
    ) -> Encoded:
        """The embeddings of all texts, after the long ones are read. embedded: result for `rows`.

        Raises OutOfTime if a required text has no embedding; Overloaded if others took the time.
        """
        rows = zip(self._at_once(), embedded.vectors, strict=True)
        fresh = {text: row for text, row in rows if row is not None}
        vectors = {text: self.cached[text] for text in self.texts if text in self.cached} | fresh
        encoded = Encoded(vectors, fresh, embedded.tokens, embedded.windows, embedded.batches)
        if self.long:
            encoded += read_in_rounds(self.long, model, self.partner, is_settled, deadline, times)
        if self.is_required and len(encoded.vectors) < len(self.texts):
            detail, late_s = self._no_time(deadline), embedded.retry_after_s
            raise OutOfTime(detail) if late_s is None else Overloaded(detail, late_s)
        return encoded

    def needed_heads(self) -> list[str]:
        """Heads that classify the embeddings: the partner, too, where a guess is not sure."""
        has_unsure = any(not guess.sure for guess in self.guesses.values())
        return [*self.heads, self.partner] if has_unsure else list(self.heads)

    def answers(self, rows: Mapping[str, Mapping[str, Vector]]) -> dict[tuple[str, str], Vector]:
        """Answers by (head, text): by `heads` for encoded texts, by `auto` for texts with a guess.

        rows: answers by head and text, of `needed_heads`.
        """
        answers = {(head, text): row for head in self.heads for text, row in rows[head].items()}
        for text, guess in self.guesses.items():
            if text in self.long:
                answers[AUTO, text] = self.long[text].final_answer
            else:
                partner = None if guess.sure else rows[self.partner].get(text)
                answers[AUTO, text] = answer_auto(guess, partner)
        return answers

    def check_time(self, encoder: TextEncoder, deadline: Deadline) -> None:
        """Raises OutOfTime if there is too little time for texts that are required."""
        if self.is_required and encoder.expected_s(self._tokens()) > deadline.remaining_s():
            raise OutOfTime(self._no_time(deadline))

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


def plan_encoding(
    texts: Sequence[str],
    heads: Sequence[str],
    windows: Mapping[str, Sequence[Window]],
    cached: Mapping[str, Vector],
    guesses: Mapping[str, Guess],
    facts: EstimatorFacts,
) -> ToEncode:
    """The encoder's work for texts without a cached answer.

    heads: heads besides `auto`. Without them, texts with a sure guess need no encoder.
    """
    unsure = [text for text, guess in guesses.items() if not guess.sure]
    long: dict[str, LongText] = {}
    if facts.settled_margin < 1 and any(len(windows[text]) > 1 for text in unsure):
        long = find_long(unsure, windows, guesses, cached, is_embedded=bool(heads))
    needed = texts if heads else [text for text in unsure if text not in long]
    return ToEncode(needed, windows, cached, bool(heads), heads, facts.partner, guesses, long)


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
