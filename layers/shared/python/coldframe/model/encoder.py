"""Rows of token ids to embeddings: the quantized ONNX session, and which rows share a pass of it.

Rows of equal length need no padding and no attention mask, so a row's embedding cannot
depend on its neighbours, and no padding is computed.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coldframe.errors import BundleCorrupt, EncoderDrift
from coldframe.model.bundle import EncoderFacts, Golden, GoldenVector
from coldframe.model.files import ENCODER
from coldframe.model.tokenizer import TextWindows, Window

# onnxruntime's official packages report usage to their maker unless this is set
# before the import: https://github.com/microsoft/onnxruntime/pull/27379
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime as ort

Embeddings: TypeAlias = NDArray[np.float32]
"""float32 (n, d), every row of length 1."""


Batch = list[int]
"""Positions of the rows that share one forward pass."""


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
    """What encodes rows of token ids."""

    dimension: int

    def encode(self, rows: Sequence[Window]) -> Embeddings: ...


class Encoder:
    """all-MiniLM-L6-v2 with int8 weights, mean pooling and normalisation inside the graph.

    A text longer than `max_tokens` is cut into windows of that length; its
    embedding is the mean of theirs, weighted by their tokens, at unit length.
    Safe for threads: a session of onnxruntime may run in several at once.
    https://github.com/microsoft/onnxruntime/issues/13571, read 2026-11-21
    """

    def __init__(self, folder: Path, facts: EncoderFacts, threads: int) -> None:
        """Raises BundleMissing or BundleCorrupt when `folder` has no usable encoder."""
        self.dimension = facts.dimension
        self._session = _load_session(folder / ENCODER, threads)

    def encode(self, rows: Sequence[Window]) -> Embeddings:
        """Embeddings of rows of equal length: float32 (len(rows), d).

        Source: mean pooling, Reimers & Gurevych 2019, section 3.
        """
        input_ids = np.array(rows, dtype=np.int64)  # (B, T)
        (embeddings,) = self._session.run(None, {"input_ids": input_ids})
        return embeddings  # type: ignore[no-any-return]  # (B, d)


def pool_windows(embeddings: Embeddings, tokens: Sequence[int], counts: Sequence[int]) -> Embeddings:
    """One embedding per text from those of its windows.

    embeddings: (windows, d), the windows of a text beside each other.
    tokens: length of each window, its weight. counts: windows of each text.
    Returns float32 (len(counts), d), every row of length 1.
    """
    if len(counts) == len(embeddings):
        return embeddings  # one window each: nothing to pool, and not a bit to change
    weighted = embeddings * np.asarray(tokens, dtype=np.float32)[:, None]  # (W, d)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    pooled = np.add.reduceat(weighted, starts, axis=0)  # (n, d)
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
    single = np.asarray(counts) == 1
    pooled[single] = embeddings[starts[single]]
    embeddings_of_texts: Embeddings = pooled.astype(np.float32, copy=False)
    return embeddings_of_texts


def check_golden(
    encoder: RowEncoder, windows: TextWindows, golden: Golden, at_most: int | None = None
) -> float:
    """The lowest cosine between the encoder's embeddings and the golden ones.

    Raises EncoderDrift when two looks in a row find it under `golden.min_cosine`: int8 kernels are
    silently wrong on some processors. One look alone condemns no environment.
    """
    vectors = golden.vectors[:at_most]
    for _ in range(2):
        lowest = float(np.min([_cosine(encoder, windows, vector) for vector in vectors]))
        if lowest >= golden.min_cosine:  # NaN, which `np.min` passes on, is not
            return lowest
    raise EncoderDrift(
        f"The encoder's embedding of a golden text has cosine {lowest:.4f} to the reference; expected"
        f" at least {golden.min_cosine}. This processor computes the int8 model wrongly, or"
        f" {ENCODER} is damaged: run `coldframe verify`."
    )


def _cosine(encoder: RowEncoder, windows: TextWindows, vector: GoldenVector) -> float:
    first = windows.cut([vector.text])[0][:1]
    return float(encoder.encode(first)[0] @ np.asarray(vector.embedding, dtype=np.float32))


def _load_session(path: Path, threads: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # The graph was optimised when it was built; the weights are used where the
    # page cache has them instead of being copied.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.use_memory_mapped_ort_model", "1")
    options.add_session_config_entry("session.use_ort_model_bytes_for_initializers", "1")
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # onnxruntime's errors share no public base class
        raise BundleCorrupt(f"{path.name} cannot be loaded: {exc}. Run `coldframe build`.") from exc
