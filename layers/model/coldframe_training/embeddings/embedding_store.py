"""Embeddings on disk: the windows of each distinct text, so that no text is embedded twice by one encoder."""

import hashlib
import platform
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EncoderManifest
from coldframe_training.embeddings.matrices import Embeddings

_BUSY_S = 60.0  # another training may be writing


class EmbeddedWindows(NamedTuple):
    """The windows of one text. tokens: length of each, (w,), int32. embeddings: (w, d)."""

    tokens: NDArray[np.int32]
    embeddings: Embeddings


class EmbeddingStore:
    """Embeddings of windows by the digest of their text; the texts themselves are not kept.

    What is added stays, also when the process is killed afterwards.
    """

    def __init__(self, path: Path, dimension: int) -> None:
        """dimension: d, of every embedding."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._dimension = dimension
        self._rows = sqlite3.connect(path, timeout=_BUSY_S)
        self._rows.execute("CREATE TABLE IF NOT EXISTS windows (text BLOB PRIMARY KEY, embedded BLOB)")

    def missing(self, texts: Sequence[str]) -> list[str]:
        """The distinct texts without an embedding, in the order of their first appearance."""
        return [text for text in dict.fromkeys(texts) if self._find(text) is None]

    def add(self, texts: Iterable[str], embedded: Iterable[EmbeddedWindows]) -> None:
        """Keeps the windows of each text."""
        rows = (
            (_key(text), windows.tokens.tobytes() + windows.embeddings.tobytes())
            for text, windows in zip(texts, embedded, strict=True)
        )
        with self._rows:
            self._rows.executemany("INSERT OR REPLACE INTO windows VALUES (?, ?)", rows)

    def windows(self, text: str) -> EmbeddedWindows:
        """The windows of one text. Raises KeyError when it has none yet."""
        content = self._find(text)
        if content is None:
            raise KeyError("A text has no embedding yet.")
        count = len(content) // (4 + 4 * self._dimension)
        tokens = np.frombuffer(content, dtype=np.int32, count=count)
        embeddings = np.frombuffer(content, dtype=np.float32, offset=4 * count)
        return EmbeddedWindows(tokens, embeddings.reshape(count, self._dimension))

    def close(self) -> None:
        self._rows.close()

    def _find(self, text: str) -> bytes | None:
        row = self._rows.execute("SELECT embedded FROM windows WHERE text = ?", (_key(text),)).fetchone()
        return None if row is None else bytes(row[0])


def store_of(folder: Path, encoder: EncoderManifest) -> EmbeddingStore:
    """The embeddings that were made by one version of an encoder, on one kind of processor."""
    name = f"{encoder.name}-{encoder.version.removeprefix('sha256:')[:16]}-{platform.machine()}"
    return EmbeddingStore(folder / f"{name}.sqlite", encoder.facts.dimension)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
