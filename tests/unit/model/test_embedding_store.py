"""Embeddings are kept by the digest of their text."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from coldframe.model.bundle import EncoderManifest
from coldframe_training.embeddings.embedding_store import EmbeddedWindows, EmbeddingStore, store_of
from tests.conftest import tiny_encoder_manifest

ENCODER = tiny_encoder_manifest()


def embedded(*tokens: int) -> EmbeddedWindows:
    """Windows of so many tokens each, with embeddings drawn at random."""
    rows = np.random.default_rng(len(tokens)).normal(size=(len(tokens), 8)).astype(np.float32)
    return EmbeddedWindows(np.array(tokens, dtype=np.int32), rows)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddingStore]:
    """An empty store."""
    with closing(EmbeddingStore(tmp_path / "folder" / "embeddings.sqlite", dimension=8)) as empty:
        yield empty


def test_windows_come_back_to_the_bit(store: EmbeddingStore) -> None:
    """What was added comes back, text by text, with as many windows as it had."""
    one, three = embedded(7), embedded(256, 256, 9)
    store.add(["a", "b"], [one, three])
    for text, expected in (("b", three), ("a", one)):
        found = store.windows(text)
        assert np.array_equal(found.tokens, expected.tokens)
        assert np.array_equal(found.embeddings, expected.embeddings)


def test_missing_texts_are_named_once(store: EmbeddingStore) -> None:
    """A text that appears twice is to be embedded once; one that has an embedding not at all."""
    store.add(["b"], [embedded(5)])
    assert store.missing(["c", "b", "a", "c"]) == ["c", "a"]


def test_windows_of_a_missing_text(store: EmbeddingStore) -> None:
    """A text without an embedding is an error that does not repeat the text."""
    with pytest.raises(KeyError) as raised:
        store.windows("a private text")
    assert "private" not in str(raised.value)


def test_embeddings_survive_the_process(tmp_path: Path) -> None:
    """A store that is opened again has what was added before."""
    for expected in ([], ["a"]):
        with closing(store_of(tmp_path, ENCODER)) as store:
            assert [text for text in ["a"] if not store.missing([text])] == expected
            store.add(["a"], [embedded(5)])


def resealed(manifest: EncoderManifest) -> EncoderManifest:
    """The manifest with the digest of what it says."""
    return replace(manifest, version=manifest.digest())


OTHERS = {
    "graph": resealed(replace(ENCODER, graph="sha256:1")),
    "windows": ENCODER.with_windows(1),
    "name": resealed(replace(ENCODER, name="other")),
}


@pytest.mark.parametrize("changed", OTHERS)
def test_another_encoder_has_embeddings_of_its_own(tmp_path: Path, changed: str) -> None:
    """Another graph, another number of windows or another name finds none of these embeddings."""
    with closing(store_of(tmp_path, ENCODER)) as store:
        store.add(["a"], [embedded(5)])
    with closing(store_of(tmp_path, OTHERS[changed])) as other:
        assert other.missing(["a"]) == ["a"]


def test_texts_are_not_kept(tmp_path: Path) -> None:
    """No file of a store holds a text."""
    with closing(store_of(tmp_path, ENCODER)) as store:
        store.add(["a private text"], [embedded(5)])
    assert all(b"private" not in path.read_bytes() for path in tmp_path.iterdir())
