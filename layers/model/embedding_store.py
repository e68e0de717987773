"""Embeddings on disk: one row for each distinct text, so that no text is embedded twice by one encoder."""

import hashlib
import platform
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from coldframe.model.bundle import EncoderFacts
from coldframe.model.encoder import Embeddings

_BUSY_S = 60.0  # another training may be writing


class EmbeddingStore:
    """Embeddings by the digest of their text; the texts themselves are not kept.

    What is added stays, also when the process is killed afterwards.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._rows = sqlite3.connect(path, timeout=_BUSY_S)
        self._rows.execute("CREATE TABLE IF NOT EXISTS embeddings (text BLOB PRIMARY KEY, embedding BLOB)")

    def missing(self, texts: Sequence[str]) -> list[str]:
        """The distinct texts without an embedding, in the order of their first appearance."""
        return [text for text in dict.fromkeys(texts) if self._find(text) is None]

    def add(self, texts: Iterable[str], embeddings: Embeddings) -> None:
        """Keeps the embedding (d,) of each text."""
        rows = ((_key(text), row.tobytes()) for text, row in zip(texts, embeddings, strict=True))
        with self._rows:
            self._rows.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?)", rows)

    def rows(self, texts: Sequence[str]) -> Embeddings:
        """float32 (len(texts), d). Raises KeyError when a text has none."""
        found = [self._find(text) for text in texts]
        if any(row is None for row in found):
            raise KeyError("A text has no embedding yet.")
        content = b"".join(row for row in found if row is not None)
        return np.frombuffer(content, dtype=np.float32).reshape(len(texts), -1).copy()

    def close(self) -> None:
        self._rows.close()

    def _find(self, text: str) -> bytes | None:
        row = self._rows.execute("SELECT embedding FROM embeddings WHERE text = ?", (_key(text),)).fetchone()
        return None if row is None else bytes(row[0])


def store_of(folder: Path, facts: EncoderFacts, graph: str) -> EmbeddingStore:
    """The embeddings that were made by one encoder, cutting texts in one way, on one kind of processor."""
    name = hashlib.sha256(f"{graph} {facts} {platform.machine()}".encode()).hexdigest()[:16]
    return EmbeddingStore(folder / f"{name}.sqlite")


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
