"""Embeddings of whole data sets, made by the encoder that will be served, and kept on disk."""

import hashlib
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from coldframe.model.bundle import EncoderFacts
from coldframe.model.encoder import Embeddings, Encoder
from coldframe.model.heads import load_head
from coldframe.model.model import Model, to_matrix
from coldframe.model.tokenizer import TextWindows
from coldframe.text import normalise
from coldframe.timing import NO_DEADLINE
from layers.model.paths import CACHE

_CHUNK = 64  # texts handed to a process at once
_BATCH_TOKENS = 512


def embed(name: str, texts: Sequence[str], folder: Path, facts: EncoderFacts, graph: str) -> Embeddings:
    """float32 (len(texts), d), with up to `facts.max_windows` windows of each text.

    graph: digest of the encoder in `folder`.
    Kept under `.cache/embeddings`, named by encoder, windows and texts.
    """
    path = CACHE / "embeddings" / f"{name}-{_digest(texts, facts, graph)}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, _embed(name, texts, folder, facts))
    return np.load(path)  # type: ignore[no-any-return]


def _embed(name: str, texts: Sequence[str], folder: Path, facts: EncoderFacts) -> Embeddings:
    # Long texts first: the processes then finish together.
    order = np.argsort([-len(text) for text in texts], kind="stable")
    chunks = [[texts[i] for i in part] for part in _parts(order)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(os.cpu_count(), _start, (folder, facts)) as pool:
        done = tqdm(pool.imap(_embed_chunk, chunks), total=len(chunks), desc=f"embed {name}", unit="chunk")
        embeddings = np.concatenate(list(done))
    result = np.empty_like(embeddings)
    result[order] = embeddings
    return result


def _parts(order: np.ndarray) -> Iterator[np.ndarray]:
    return (order[start : start + _CHUNK] for start in range(0, len(order), _CHUNK))


def _start(folder: Path, facts: EncoderFacts) -> None:
    global _model, _windows
    _model = Model(Encoder(folder, facts, threads=1), partial(load_head, folder), _BATCH_TOKENS)
    _windows = TextWindows(folder, facts)


_model: Model
_windows: TextWindows


def _embed_chunk(texts: list[str]) -> Embeddings:
    windows = _windows.cut([normalise(text) for text in texts])
    return to_matrix([vector for vector in _model.embed(windows, NO_DEADLINE).vectors if vector is not None])


def _digest(texts: Sequence[str], facts: EncoderFacts, graph: str) -> str:
    digest = hashlib.sha256(f"{graph} {facts}".encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    return digest.hexdigest()[:16]
