"""Rows of token ids to embeddings: the quantized ONNX graph, and batches of rows that share a pass.

Rows of equal length need no padding and no attention mask, so a row's embedding cannot
depend on its neighbours, and no padding is computed.
"""

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

from coldframe.errors import BundleCorrupt, BundleError, BundleMissing, EncoderDrift
from coldframe.graphs.graph import Graph, GraphError, Tensor
from coldframe.graphs.runtime import open_graph
from coldframe.model.budget import measure_budget
from coldframe.model.bundle import EncoderFacts, Golden, GoldenVector
from coldframe.model.files import ENCODER, encoder_graph
from coldframe.model.tokenizer import TextWindows, Window
from coldframe.timing import Clock, Deadline, MovingAverage
from coldframe.vectors import Vector, cosine, split, weighted_mean

Batch = list[int]
"""Most positions of the rows that share one forward pass."""


def plan_batches(lengths: Sequence[int], max_batch_tokens: int) -> list[Batch]:
    """Batches that cover every row once, shortest rows first.

    lengths: tokens of each row.
    A batch holds rows of one length and at most `max_batch_tokens` tokens; a
    longer row is a batch of its own.
    """
    by_length: dict[int, list[int]] = defaultdict(list)
    for row, length in enumerate(lengths):
        by_length[length].append(row)
    batches: list[Batch] = []
    for length, rows_of_length in sorted(by_length.items()):
        size = max(1, max_batch_tokens // max(1, length))
        batches += [rows_of_length[start : start + size] for start in range(0, len(rows_of_length), size)]
    return batches


class RowEncoder(Protocol):
    """Encodes rows of token ids."""

    dimension: int

    def encode(self, rows: Sequence[Window]) -> list[Vector]: ...


class Encoder:
    """all-MiniLM-L6-v2 with int8 weights, mean pooling and normalisation inside the graph.

    A text longer than `max_tokens` is cut into windows of that length; its
    embedding is the mean of theirs, weighted by their tokens, at unit length.
    Safe for threads, as its graph is.
    """

    def __init__(self, folder: Path, facts: EncoderFacts, threads: int) -> None:
        """Raises BundleMissing or BundleCorrupt when `folder` has no usable encoder."""
        self.dimension = facts.dimension
        self._graph = _open(folder / ENCODER, threads)

    def encode(self, rows: Sequence[Window]) -> list[Vector]:
        """Embeddings (d,) of rows of equal length, at least one. Raises BundleError when the graph fails.

        Source: mean pooling, Reimers & Gurevych 2019, section 3.
        """
        shape = (len(rows), len(rows[0]))
        ids = Tensor("q", shape, array("q", chain.from_iterable(rows)))  # (B, T)
        try:
            embeddings = self._graph.run({"input_ids": ids}, (len(rows), self.dimension))
        except GraphError as exc:
            raise BundleError(f"{ENCODER} cannot run here: {exc}. Run `coldframe verify`.") from exc
        return split(embeddings, len(rows))  # (B, d)


class Embedded(NamedTuple):
    """The embedding of each text, and the work done. None: there was no time for that text.

    retry_after_s: when there would have been time, if other requests used it up. is_last: the request gets no
    further rounds.
    """

    vectors: list[Vector | None]
    tokens: int
    windows: int
    batches: int
    retry_after_s: float | None = None
    is_last: bool = False


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
    ) -> None:
        """ms_per_token: speed of passes; measured here with each pass, and read by the cache's policy.

        plan: batches of rows by their lengths and the tokens of a batch, shortest rows first.
        """
        self.row_encoder = encoder
        self.max_batch_tokens = max_batch_tokens
        self._clock = clock
        self.ms_per_token = ms_per_token
        self._plan = plan

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
        batches = 0
        for batch in self._plan(lengths, self.max_batch_tokens):
            tokens = sum(lengths[row] for row in batch)
            if self.expected_s(tokens) > deadline.remaining_s():
                continue
            started_s = self._clock()
            encoded = self.row_encoder.encode([rows[row] for row in batch])
            self.ms_per_token.add((self._clock() - started_s) * 1e3 / tokens)
            batches += 1
            for row, embedding in zip(batch, encoded, strict=True):
                embeddings[row] = embedding
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


def pool_windows(rows: Sequence[Vector], tokens: Sequence[int], counts: Sequence[int]) -> list[Vector]:
    """One embedding per text from the embeddings of its windows.

    rows: the windows of a text are adjacent. tokens: length of each window, its weight.
    counts: windows of each text. The embedding of a single window is unchanged, to the bit.
    """
    pooled = []
    start = 0
    for count in counts:
        end = start + count
        pooled.append(rows[start] if count == 1 else weighted_mean(rows[start:end], tokens[start:end]))
        start = end
    return pooled


def pool_complete(
    rows: Sequence[Vector | None], tokens: Sequence[int], counts: Sequence[int]
) -> list[Vector | None]:
    """One embedding per text, as from `pool_windows`; None for a text that lacks a window."""
    pooled: list[Vector | None] = []
    start = 0
    for count in counts:
        end = start + count
        whole = [row for row in rows[start:end] if row is not None]
        pooled += pool_windows(whole, tokens[start:end], [count]) if len(whole) == count else [None]
        start = end
    return pooled


def embedded(texts: Sequence[Sequence[Window]], rows: Sequence[Vector | None], batches: int) -> Embedded:
    """The embeddings of texts from those of their windows. rows: one for each window, None without time."""
    lengths = [len(window) for text in texts for window in text]
    encoded = [length for length, row in zip(lengths, rows, strict=True) if row is not None]
    is_short = len(rows) == len(texts)  # each text has one window
    pooled = list(rows) if is_short else pool_complete(rows, lengths, [len(text) for text in texts])
    return Embedded(pooled, sum(encoded), len(encoded), batches)


def check_golden(
    encoder: RowEncoder, windows: TextWindows, golden: Golden, at_most: int | None = None
) -> float:
    """The lowest cosine between the encoder's embeddings and the golden ones.

    Raises EncoderDrift when two checks in a row find it under `golden.min_cosine`: int8 kernels are
    silently wrong on some processors. A single failed check is repeated.
    """
    vectors = golden.vectors[:at_most]
    for _ in range(2):
        cosines = [_cosine(encoder, windows, vector) for vector in vectors]
        if all(value >= golden.min_cosine for value in cosines):  # NaN fails the comparison
            return min(cosines)
    raise EncoderDrift(
        f"The encoder's embedding of a golden text has cosine {min(cosines):.4f} to the reference; expected"
        f" at least {golden.min_cosine}. This processor computes the int8 model wrongly, or"
        f" {ENCODER} is damaged: run `coldframe verify`."
    )


def _cosine(encoder: RowEncoder, windows: TextWindows, vector: GoldenVector) -> float:
    first = windows.cut([vector.text])[0][:1]
    return cosine(encoder.encode(first)[0], vector.embedding)


def _open(path: Path, threads: int) -> Graph:
    if not path.is_file():
        raise BundleMissing(f"{path} is missing. Run `coldframe build`.")
    try:
        return open_graph(encoder_graph(path, threads))
    except GraphError as exc:
        raise BundleCorrupt(f"{path.name} cannot be loaded: {exc}. Run `coldframe build`.") from exc
