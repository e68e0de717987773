"""Long texts that the estimator is unsure of: `auto` reads window after window, until its answer is settled.

Texts take turns: all first windows are read, then the second windows of unsettled texts. So their windows
share
passes. An answer depends on its text alone: these texts are read in rounds even if their whole embedding is
cached. The mean of some windows is used for answers of `auto` alone. An answer that improves with time:
anytime prediction, Zilberstein 1996.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import zip_longest

from msgspec import Struct, field

from coldframe.model.encoder import TextEncoder
from coldframe.model.estimator import Guess, answer_auto, mean_with
from coldframe.model.model import Model
from coldframe.model.tokenizer import Window
from coldframe.pipeline.answers import Encoded
from coldframe.timing import Deadline, StageTimes
from coldframe.vectors import Vector, to_floats

IsSettled = Callable[[Sequence[float]], bool]
"""Whether an answer from some windows is final."""


class LongText(Struct):
    """A text of several windows in one request, with the windows read so far.

    is_known: its embedding is in the cache. is_embedded: other heads need its embedding.
    vectors: embeddings of the windows read. answer: answer of `auto`; None until it is settled.
    cut_answer: answer of `auto` from the windows read so far; None where the request does not accept it.
    """

    windows: Sequence[Window]
    guess: Guess
    is_known: bool
    is_embedded: bool
    vectors: list[Vector] = field(default_factory=list)
    answer: bytes | None = None
    cut_answer: bytes | None = None

    @property
    def next_window(self) -> Window:
        return self.windows[len(self.vectors)]

    @property
    def read_windows(self) -> Sequence[Window]:
        return self.windows[: len(self.vectors)]

    @property
    def is_whole(self) -> bool:
        """Whether every window is read: only then is their mean the text's embedding."""
        return len(self.vectors) == len(self.windows)

    @property
    def goes_on(self) -> bool:
        """Whether to read another window: for the answer, or for an embedding that is needed."""
        return not self.is_whole and (self.answer is None or (self.is_embedded and not self.is_known))

    @property
    def final_answer(self) -> bytes:
        """The answer of `auto`. If time ran out before it was settled: from the windows read so far, where
        the request accepts that, or else the estimator's guess.
        """
        return self.answer or self.cut_answer or answer_auto(self.guess, None)

    def take(self, partner: Vector, is_settled: IsSettled, may_rush: bool) -> None:
        """Takes the answer if it is settled. partner: answer (k + 1,) for the mean of the windows read.

        may_rush: the request accepts an answer that is not settled.
        """
        if self.is_whole or is_settled(mean_with(self.guess, to_floats(partner)[:-1])):
            self.answer = answer_auto(self.guess, partner)
        elif may_rush:
            self.cut_answer = answer_auto(self.guess, partner, is_cut=True)


def find_long(
    texts: Iterable[str],
    windows: Mapping[str, Sequence[Window]],
    guesses: Mapping[str, Guess],
    cached: Container[str],
    is_embedded: bool,
) -> dict[str, LongText]:
    """Texts of several windows. cached: texts with an embedding. is_embedded: other heads need embeddings."""
    return {
        text: LongText(windows[text], guesses[text], text in cached, is_embedded)
        for text in texts
        if len(windows[text]) > 1
    }


def read_in_rounds(
    texts: Mapping[str, LongText],
    model: Model,
    partner: str,
    is_settled: IsSettled,
    deadline: Deadline,
    times: StageTimes,
) -> Encoded:
    """Reads each text until its answer is settled, as far as the time allows.

    partner: the head whose probabilities are averaged with the guess. Returns the encoder's work, and the
    embeddings of texts that were read completely.
    """
    whole: dict[str, Vector] = {}
    tokens = windows = batches = 0
    pending = dict(texts)
    while pending:
        with times.stage("encode"):
            rows = [[text.next_window] for text in pending.values()]
            embedded = model.encoder.embed(rows, deadline, rounds_of(pending.values(), 1))
            read = _add_windows(pending, embedded.vectors)
            means = _pool(read, model.encoder)
        with times.stage("heads"):
            unsettled = {name: means[name] for name, text in read.items() if text.answer is None}
            partner_rows = model.heads.classify(unsettled, [partner])[partner] if unsettled else {}
            for name, row in partner_rows.items():
                read[name].take(row, is_settled, deadline.may_rush)
        tokens, windows = tokens + embedded.tokens, windows + embedded.windows
        batches += embedded.batches
        whole |= {name: means[name] for name, text in read.items() if text.is_whole}
        pending = {name: text for name, text in read.items() if text.goes_on and not embedded.is_last}
    model.encoder.end_rounds(deadline)
    fresh = {name: vector for name, vector in whole.items() if not texts[name].is_known}
    vectors = {name: vector for name, vector in fresh.items() if texts[name].is_embedded}
    settled = frozenset(name for name, text in texts.items() if text.answer or text.cut_answer)
    return Encoded(vectors, fresh, tokens, windows, batches, settled)


def rounds_of(texts: Iterable[LongText], start: int = 0) -> list[list[Window]]:
    """Windows that texts may still need, round by round. start: rounds to leave out."""
    left = [text.windows[len(text.vectors) + start :] for text in texts]
    return [[one for one in windows if one is not None] for windows in zip_longest(*left)]


def _add_windows(texts: Mapping[str, LongText], vectors: Sequence[Vector | None]) -> dict[str, LongText]:
    """Texts that there was time for, each with one more window."""
    read = {}
    for (name, text), vector in zip(texts.items(), vectors, strict=True):
        if vector is not None:
            text.vectors.append(vector)
            read[name] = text
    return read


def _pool(texts: Mapping[str, LongText], encoder: TextEncoder) -> dict[str, Vector]:
    """The mean of the windows read, by text."""
    windows = [text.read_windows for text in texts.values()]
    return dict(zip(texts, encoder.pool(windows, [text.vectors for text in texts.values()]), strict=True))
