"""Texts to embeddings: the tokenizer and the quantized ONNX session."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from coldframe.bundle import ENCODER, TOKENIZER, EncoderFacts, Golden, read_file
from coldframe.errors import BundleCorrupt, EncoderDrift

# onnxruntime's official packages report usage to their maker unless this is set
# before the import: https://github.com/microsoft/onnxruntime/pull/27379
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime as ort

Embeddings: TypeAlias = NDArray[np.float32]
"""float32 (n, d), every row of length 1."""

Window: TypeAlias = list[int]
"""Token ids of one row of a forward pass, with [CLS] and [SEP]."""

_CHARACTERS_PER_TOKEN = 8  # English has four to five: twice that nearly always holds enough tokens


class TextWindows:
    """Texts to rows of token ids: WordPiece, then windows of `max_tokens`."""

    def __init__(self, folder: Path, facts: EncoderFacts) -> None:
        """Raises BundleMissing or BundleCorrupt when `folder` has no usable tokenizer."""
        self._content_tokens = facts.max_tokens - 2  # [CLS] and [SEP] take two
        self._max_windows = facts.max_windows
        self._tokenizer = _load_tokenizer(folder)
        self._cls: int = self._tokenizer.token_to_id("[CLS]")
        self._sep: int = self._tokenizer.token_to_id("[SEP]")

    def cut(self, texts: Sequence[str]) -> list[list[Window]]:
        """Windows of each text, in input order; at least one per text, at most `max_windows`."""
        needed = self._content_tokens * self._max_windows
        beginnings = [_beginning(text, needed * _CHARACTERS_PER_TOKEN) for text in texts]
        ids = self._ids(beginnings)
        for i, text in enumerate(texts):
            if len(ids[i]) < needed and len(beginnings[i]) < len(text):
                ids[i] = self._ids([text])[0]  # its words are long
        return [self._windows(row) for row in ids]

    def _ids(self, texts: list[str]) -> list[list[int]]:
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def _windows(self, ids: list[int]) -> list[Window]:
        size = self._content_tokens
        starts = range(0, max(1, len(ids)), size)[: self._max_windows]
        return [[self._cls, *ids[start : start + size], self._sep] for start in starts]


class Encoder:
    """all-MiniLM-L6-v2 with int8 weights, mean pooling and normalisation inside the graph.

    A text longer than `max_tokens` is cut into windows of that length; its
    embedding is the mean of theirs, weighted by their tokens, at unit length.
    """

    def __init__(self, folder: Path, facts: EncoderFacts, threads: int) -> None:
        """Raises BundleMissing or BundleCorrupt when `folder` has no usable encoder."""
        self.dimension = facts.dimension
        self._windows = TextWindows(folder, facts)
        self._session = _load_session(folder / ENCODER, threads)

    def tokenize(self, texts: Sequence[str]) -> list[list[Window]]:
        """Windows of each text, in input order; at least one window per text."""
        return self._windows.cut(texts)

    def encode(self, rows: Sequence[Window]) -> Embeddings:
        """Embeddings of rows of equal length: float32 (len(rows), d).

        Source: mean pooling, Reimers & Gurevych 2019, section 3.
        """
        input_ids = np.array(rows, dtype=np.int64)  # (B, T)
        (embeddings,) = self._session.run(None, {"input_ids": input_ids})
        return embeddings  # type: ignore[no-any-return]  # (B, d)


def content_tokens(windows: Sequence[Window]) -> list[int]:
    """The tokens of a text's windows, without their [CLS] and [SEP]."""
    return [token for window in windows for token in window[1:-1]]


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


def check_golden(encoder: Encoder, golden: Golden, at_most: int | None = None) -> float:
    """The lowest cosine between the encoder's embeddings and the golden ones.

    Raises EncoderDrift when it is under `golden.min_cosine`: int8 kernels are
    silently wrong on some processors.
    """
    lowest = 1.0
    for vector in golden.vectors[:at_most]:
        windows = encoder.tokenize([vector.text])[0]
        embedding = encoder.encode(windows[:1])[0]
        cosine = float(embedding @ np.asarray(vector.embedding, dtype=np.float32))
        lowest = min(lowest, cosine)
    if not lowest >= golden.min_cosine:  # written so that NaN fails too
        raise EncoderDrift(
            f"The encoder's embedding of a golden text has cosine {lowest:.4f} to the reference; expected"
            f" at least {golden.min_cosine}. This processor computes the int8 model wrongly, or"
            f" {ENCODER} is damaged: run `coldframe verify`."
        )
    return lowest


def _beginning(text: str, characters: int) -> str:
    """The first words of a text, of about `characters`; all of it where it has no space to cut at.

    Tokens never reach across a space, so these words' tokens are the text's first ones.
    """
    space = text.rfind(" ", 0, characters) if len(text) > characters else -1
    return text[:space] if space > 0 else text


def _load_tokenizer(folder: Path) -> Tokenizer:
    content = read_file(folder, TOKENIZER)
    try:
        return Tokenizer.from_buffer(content)
    except Exception as exc:  # tokenizers raises bare Exception
        raise BundleCorrupt(f"{TOKENIZER} cannot be read: {exc}. Run `coldframe build`.") from exc


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
