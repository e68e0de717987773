"""A loaded model: its encoder, which other models may share, and its heads, over vectors as bytes."""

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from coldframe.config import DEFAULT_BATCH_TOKENS, Settings
from coldframe.model.budget import measure_budget
from coldframe.model.bundle import EncoderFacts, load_golden
from coldframe.model.centroids import load_centroids
from coldframe.model.encoder import (
    Batch,
    Encoder,
    RowEncoder,
    check_golden,
    plan_batches,
    pool_complete,
    pool_windows,
)
from coldframe.model.heads import Head, load_head
from coldframe.model.tokenizer import TextWindows, Window
from coldframe.timing import Clock, Deadline, MovingAverage
from coldframe.vectors import Vector, to_vector

RunAll: TypeAlias = Callable[[Callable[[Batch], bool], Iterable[Batch]], Iterable[bool]]
"""Calls a function for each pass: `map`, or that of an executor."""


class Embedded(NamedTuple):
    """The embedding of each text, and the work done. None: there was no time for that text.

    retry_after_s: when there would have been time, if other requests used it up.
    """

    vectors: list[Vector | None]
    tokens: int
    windows: int
    batches: int
    retry_after_s: float | None = None


class TextEncoder:
    """A loaded encoder: texts as windows in, embeddings out. Models that were trained on it share it.

    Safe for threads: the encoder is only read.
    """

    def __init__(
        self,
        encoder: RowEncoder,
        max_batch_tokens: int,
        ms_per_token: MovingAverage,
        clock: Clock = time.perf_counter,
        plan: Callable[[Sequence[int], int], list[Batch]] = plan_batches,
        run_all: RunAll = map,
    ) -> None:
        """ms_per_token: speed of passes; measured here with each pass, and read by the cache's policy.

        plan: batches of rows by their lengths and the tokens of a batch, shortest rows first.
        run_all: runs the passes of a call, one after the other or several at once.
        """
        self.row_encoder = encoder
        self.max_batch_tokens = max_batch_tokens
        self._clock = clock
        self.ms_per_token = ms_per_token
        self._plan = plan
        self._run_all = run_all

    def expected_s(self, tokens: int) -> float:
        """Probable time to encode this many tokens in one pass after the other."""
        return tokens * self.ms_per_token.value / 1e3

    def embed(
        self,
        texts: Sequence[Sequence[Window]],
        deadline: Deadline,
        later: Sequence[Sequence[Window]] = (),
    ) -> Embedded:
        """Embeddings of texts from their windows, short ones first, as far as the time allows.

        later: windows that the request may send in later rounds. A shared encoder reserves time for them
        until
        `end_rounds`.
        """
        rows = [window for text in texts for window in text]
        lengths = [len(row) for row in rows]
        embeddings: list[Vector | None] = [None] * len(rows)

        def run(batch: Batch) -> bool:
            """Runs a pass. Returns whether there was time for it."""
            tokens = sum(lengths[row] for row in batch)
            if self.expected_s(tokens) > deadline.remaining_s():
                return False
            started_s = self._clock()
            encoded = self.row_encoder.encode([rows[row] for row in batch])
            self.ms_per_token.add((self._clock() - started_s) * 1e3 / tokens)
            for row, embedding in zip(batch, encoded, strict=True):
                embeddings[row] = embedding
            return True

        batches = sum(self._run_all(run, self._plan(lengths, self.max_batch_tokens)))
        return embedded(texts, embeddings, batches)

    def end_rounds(self, deadline: Deadline) -> None:
        """Says that the request with this deadline has no further rounds."""

    def pool(self, windows: Sequence[Sequence[Window]], vectors: Sequence[Sequence[Vector]]) -> list[Vector]:
        """The embedding of each text from the results of `embed` for its windows."""
        rows = [vector for text in vectors for vector in text]
        lengths = [len(window) for text in windows for window in text]
        return pool_windows(rows, lengths, [len(text) for text in windows])

    def measure_budget(self) -> None:
        """Sets the token budget of a pass to the quickest one on this machine; answers are unchanged, to the
        bit.

        Skipped where rows of several lengths share a pass: those budgets are larger.
        """
        if self._plan is not plan_batches:
            return
        self.max_batch_tokens = measure_budget(self.row_encoder.encode, self.max_batch_tokens, self._clock)


class Strange(Protocol):
    """Says how strange embeddings (d,) are to a model, each from 0 to 1."""

    def out_of_distribution(self, embeddings: Sequence[Vector]) -> list[float]: ...


class Heads:
    """The heads of a model. Safe for threads: loaded heads are only read.

    If two threads are the first to use a head, both may read it, with equal results.
    """

    def __init__(self, read_head: Callable[[str], Head], centroids: Strange) -> None:
        """centroids: say how strange an embedding is to the model."""
        self._head = functools.cache(read_head)  # a head is read at its first use
        self._centroids = centroids

    def classify(
        self, embeddings: Mapping[str, Vector], heads: Iterable[str]
    ) -> dict[str, dict[str, Vector]]:
        """Answers (k + 1,) by each of `heads`, under the names of the embeddings.

        An answer is the probability of each label, and the out-of-distribution score of the text.
        """
        vectors = list(embeddings.values())
        if not vectors:
            return {head: {} for head in heads}
        scores = [to_vector([score]) for score in self._centroids.out_of_distribution(vectors)]
        answers = {head: self._head(head).predict(vectors) for head in dict.fromkeys(heads)}
        return {
            head: {name: row + score for name, row, score in zip(embeddings, rows, scores, strict=True)}
            for head, rows in answers.items()
        }

    def probabilities(self, vectors: Sequence[Vector], head: str) -> list[Vector]:
        """Probabilities (k,) by one head for each embedding (d,)."""
        return self._head(head).predict(vectors)

    def read(self, head: str) -> None:
        """Reads a head before its first use."""
        self._head(head)


class Model(NamedTuple):
    """Parts of a model besides the estimator: an encoder, which other models may share, and heads."""

    encoder: TextEncoder
    heads: Heads


def embedded(texts: Sequence[Sequence[Window]], rows: Sequence[Vector | None], batches: int) -> Embedded:
    """The embeddings of texts from those of their windows. rows: one for each window, None without time."""
    lengths = [len(window) for text in texts for window in text]
    encoded = [length for length, row in zip(lengths, rows, strict=True) if row is not None]
    pooled = pool_complete(rows, lengths, [len(text) for text in texts])
    return Embedded(pooled, sum(encoded), len(encoded), batches)


def load_encoder(
    settings: Settings, folder: Path, facts: EncoderFacts, windows: TextWindows, ms_per_token: MovingAverage
) -> TextEncoder:
    """The encoder in `folder`. Raises a BundleError when it cannot be served on this machine."""
    encoder = Encoder(folder, facts, settings.threads)
    if settings.verify_at_init:
        check_golden(encoder, windows, load_golden(folder), at_most=1)
    max_batch_tokens = settings.max_batch_tokens or DEFAULT_BATCH_TOKENS
    return TextEncoder(encoder, max_batch_tokens, ms_per_token, run_all=_several(settings.passes))


def _several(passes: int) -> RunAll:
    """Runs up to `passes` passes at once."""
    if passes == 1:
        return map
    from concurrent.futures import ThreadPoolExecutor  # an environment with one processor does not import it

    return ThreadPoolExecutor(passes, "passes").map


def load_heads(folder: Path, partner: str) -> Heads:
    """The heads of the model in `folder`, with the estimator's partner read at once.

    Raises a BundleError when the partner cannot be used.
    """
    heads = Heads(functools.partial(load_head, folder), load_centroids(folder))
    heads.read(partner)
    return heads
