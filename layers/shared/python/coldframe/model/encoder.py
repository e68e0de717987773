"""Rows of token ids to embeddings: the quantized ONNX graph, and batches of rows that share a pass.

Rows of equal length need no padding and no attention mask, so a row's embedding cannot
depend on its neighbours, and no padding is computed.
"""

from array import array
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol

from coldframe.errors import BundleCorrupt, BundleError, BundleMissing, EncoderDrift
from coldframe.graphs.graph import Graph, GraphError, Tensor
from coldframe.graphs.runtime import open_graph
from coldframe.model.bundle import EncoderFacts, Golden, GoldenVector
from coldframe.model.files import ENCODER, encoder_graph
from coldframe.model.tokenizer import TextWindows, Window
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
        ids = array("q", chain.from_iterable(rows))  # (B, T)
        try:
            (embeddings,) = self._graph.run({"input_ids": Tensor("q", (len(rows), len(rows[0])), ids)})
        except GraphError as exc:
            raise BundleError(f"{ENCODER} cannot run here: {exc}. Run `coldframe verify`.") from exc
        return split(embeddings, len(rows))  # (B, d)


def pool_windows(rows: Sequence[Vector], tokens: Sequence[int], counts: Sequence[int]) -> list[Vector]:
    """One embedding per text from the embeddings of its windows.

    rows: the windows of a text are adjacent. tokens: length of each window, its weight.
    counts: windows of each text. The embedding of a single window is unchanged, to the bit.
    """
    if len(counts) == len(rows):
        return list(rows)
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
