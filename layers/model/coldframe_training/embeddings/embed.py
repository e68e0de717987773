"""Embeddings of whole data sets, made by the encoder that will be served."""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coldframe.cpus import usable_cpus
from coldframe.model.bundle import EncoderFacts, EncoderManifest, load_encoder_manifest
from coldframe.model.encoder import Encoder, plan_batches, pool_windows
from coldframe.model.files import encoder_folder
from coldframe.model.tokenizer import TextWindows, normalise
from coldframe.progress import Progress
from coldframe_training.embeddings.embedding_store import EmbeddedWindows, EmbeddingStore, store_of
from coldframe_training.embeddings.matrices import Embeddings, to_matrix, to_vectors
from coldframe_training.files.paths import CACHE

_CHUNK = 64  # texts handed to a process at once
_BATCH_TOKENS = 512


class ServedEncoder(NamedTuple):
    """A built encoder, and the folder of its files."""

    folder: Path
    manifest: EncoderManifest

    @property
    def facts(self) -> EncoderFacts:
        return self.manifest.facts


def served_encoder(model_dir: Path, name: str) -> ServedEncoder:
    """The encoder `name` as it was built. Raises a BundleError when there is none."""
    return ServedEncoder(encoder_folder(model_dir, name), load_encoder_manifest(model_dir, name))


def embed_windows(title: str, texts: Sequence[str], encoder: ServedEncoder) -> list[EmbeddedWindows]:
    """The windows of each text, apart.

    Each distinct text is embedded once; its windows are kept under `.cache/embeddings`.
    """
    normal = [normalise(text) for text in texts]
    with closing(store_of(CACHE / "embeddings", encoder.manifest)) as store:
        if missing := store.missing(normal):
            _embed(title, missing, encoder, store)
        return [store.windows(text) for text in normal]


def pool(texts: Sequence[EmbeddedWindows], at_most: int | None = None) -> Embeddings:
    """One embedding per text, (n, d), as serving makes it of the first `at_most` windows of each."""
    tokens = [windows.tokens[:at_most] for windows in texts]
    rows = np.concatenate([windows.embeddings[:at_most] for windows in texts])
    counts = [len(lengths) for lengths in tokens]
    return to_matrix(pool_windows(to_vectors(rows), np.concatenate(tokens).tolist(), counts))


def _embed(title: str, texts: Sequence[str], encoder: ServedEncoder, store: EmbeddingStore) -> None:
    # Long texts first: the processes then finish together.
    ordered = sorted(texts, key=len, reverse=True)
    chunks = list(_parts(ordered))
    processes = min(usable_cpus(), len(chunks))
    context = multiprocessing.get_context("spawn")
    bar = Progress(ordered, desc=f"embed {title}", unit="text")
    with bar, context.Pool(processes, _start, (encoder.folder, encoder.facts)) as pool:
        for chunk, embedded in zip(chunks, pool.imap(_embed_chunk, chunks), strict=True):
            store.add(chunk, embedded)
            bar.update(len(chunk))


def _parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    return (texts[start : start + _CHUNK] for start in range(0, len(texts), _CHUNK))


def _start(folder: Path, facts: EncoderFacts) -> None:
    global _encoder, _windows
    _encoder = Encoder(folder, facts, threads=1)
    _windows = TextWindows(folder, facts)


_encoder: Encoder
_windows: TextWindows


def _embed_chunk(texts: Sequence[str]) -> list[EmbeddedWindows]:
    cut = _windows.cut(texts)
    rows = [window for windows in cut for window in windows]
    lengths = [len(row) for row in rows]
    embeddings = np.empty((len(rows), _encoder.dimension), dtype=np.float32)
    for batch in plan_batches(lengths, _BATCH_TOKENS):
        embeddings[batch] = to_matrix(_encoder.encode([rows[row] for row in batch]))
    ends = np.cumsum([len(windows) for windows in cut])[:-1]
    parts = zip(np.split(np.array(lengths, dtype=np.int32), ends), np.split(embeddings, ends), strict=True)
    return [EmbeddedWindows(tokens, part) for tokens, part in parts]
