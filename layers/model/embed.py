"""Embeddings of whole data sets, made by the encoder that will be served."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from coldframe.model.bundle import EncoderFacts, load_manifest
from coldframe.model.encoder import Embeddings, Encoder
from coldframe.model.heads import load_head
from coldframe.model.model import Model, to_matrix
from coldframe.model.tokenizer import TextWindows
from coldframe.text import normalise
from coldframe.timing import NO_DEADLINE, MovingAverage
from layers.model.embedding_store import EmbeddingStore, store_of
from layers.model.paths import CACHE

_CHUNK = 64  # texts handed to a process at once
_BATCH_TOKENS = 512
_MS_PER_TOKEN = 0.1  # until it is measured; nothing here has a deadline


class ServedEncoder(NamedTuple):
    """The encoder of the bundle in `folder`, with the digest of its graph."""

    folder: Path
    facts: EncoderFacts
    graph: str


def served_encoder(bundle: Path) -> ServedEncoder:
    """The encoder of a built bundle. Raises a BundleError when there is none."""
    manifest = load_manifest(bundle)
    return ServedEncoder(bundle, manifest.encoder, manifest.encoder_graph)


def embed(title: str, texts: Sequence[str], encoder: ServedEncoder) -> Embeddings:
    """float32 (len(texts), d), with up to `encoder.facts.max_windows` windows of each text.

    Each distinct text is embedded once; its embedding is kept under `.cache/embeddings`.
    """
    normal = [normalise(text) for text in texts]
    with closing(store_of(CACHE / "embeddings", encoder.facts, encoder.graph)) as store:
        if missing := store.missing(normal):
            _embed(title, missing, encoder, store)
        return store.rows(normal)


def _embed(title: str, texts: Sequence[str], encoder: ServedEncoder, store: EmbeddingStore) -> None:
    # Long texts first: the processes then finish together.
    ordered = sorted(texts, key=len, reverse=True)
    chunks = list(_parts(ordered))
    processes = min(os.cpu_count() or 1, len(chunks))
    context = multiprocessing.get_context("spawn")
    bar = tqdm(total=len(texts), desc=f"embed {title}", unit="text")
    with bar, context.Pool(processes, _start, (encoder.folder, encoder.facts)) as pool:
        for chunk, embeddings in zip(chunks, pool.imap(_embed_chunk, chunks), strict=True):
            store.add(chunk, embeddings)
            bar.update(len(chunk))


def _parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    return (texts[start : start + _CHUNK] for start in range(0, len(texts), _CHUNK))


def _start(folder: Path, facts: EncoderFacts) -> None:
    global _model, _windows
    encoder = Encoder(folder, facts, threads=1)
    _model = Model(encoder, partial(load_head, folder), _BATCH_TOKENS, MovingAverage(_MS_PER_TOKEN))
    _windows = TextWindows(folder, facts)


_model: Model
_windows: TextWindows


def _embed_chunk(texts: Sequence[str]) -> Embeddings:
    windows = _windows.cut(texts)
    return to_matrix([vector for vector in _model.embed(windows, NO_DEADLINE).vectors if vector is not None])
