"""Embeddings are kept by the digest of their text."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from coldframe.model.bundle import EncoderFacts
from layers.model.embedding_store import EmbeddingStore, store_of

FACTS = EncoderFacts(dimension=3, max_tokens=256, max_windows=4)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddingStore]:
    """An empty store."""
    with closing(EmbeddingStore(tmp_path / "folder" / "embeddings.sqlite")) as empty:
        yield empty


def test_rows_come_back_to_the_bit(store: EmbeddingStore) -> None:
    """What was added comes back in the order asked for, as often as asked for."""
    embeddings = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    store.add(["a", "b"], embeddings)
    assert np.array_equal(store.rows(["b", "a", "b"]), embeddings[[1, 0, 1]])


def test_missing_texts_are_named_once(store: EmbeddingStore) -> None:
    """A text that appears twice is to be embedded once; one that has an embedding not at all."""
    store.add(["b"], np.zeros((1, 3), dtype=np.float32))
    assert store.missing(["c", "b", "a", "c"]) == ["c", "a"]


def test_rows_of_a_missing_text(store: EmbeddingStore) -> None:
    """A text without an embedding is an error that does not repeat the text."""
    with pytest.raises(KeyError) as raised:
        store.rows(["a private text"])
    assert "private" not in str(raised.value)


def test_embeddings_survive_the_process(tmp_path: Path) -> None:
    """A store that is opened again has what was added before."""
    for expected in ([], ["a"]):
        with closing(store_of(tmp_path, FACTS, "graph")) as store:
            assert [text for text in ["a"] if not store.missing([text])] == expected
            store.add(["a"], np.zeros((1, 3), dtype=np.float32))


@pytest.mark.parametrize(("graph", "windows"), [("other", 4), ("graph", 1)])
def test_another_encoder_has_embeddings_of_its_own(tmp_path: Path, graph: str, windows: int) -> None:
    """Another graph, or another number of windows, finds none of these embeddings."""
    with closing(store_of(tmp_path, FACTS, "graph")) as store:
        store.add(["a"], np.zeros((1, 3), dtype=np.float32))
    with closing(store_of(tmp_path, replace(FACTS, max_windows=windows), graph)) as other:
        assert other.missing(["a"]) == ["a"]


def test_texts_are_not_kept(tmp_path: Path) -> None:
    """No file of a store holds a text."""
    with closing(store_of(tmp_path, FACTS, "graph")) as store:
        store.add(["a private text"], np.zeros((1, 3), dtype=np.float32))
    assert all(b"private" not in path.read_bytes() for path in tmp_path.iterdir())
