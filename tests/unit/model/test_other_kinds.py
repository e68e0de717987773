"""Texts of other kinds."""

from collections import Counter

from coldframe.model.tokenizer import normalise
from coldframe_training.files.paths import ROOT
from coldframe_training.out_of_distribution.other_kinds import other_texts


def test_many_kinds() -> None:
    """There are hundreds of texts of dozens of kinds, no text twice, from one word to a hundred."""
    texts = [normalise(other.text) for other in other_texts()]
    kinds = Counter(other.kind for other in other_texts())
    assert len(texts) == len(set(texts)) >= 200
    assert len(kinds) >= 30
    assert max(kinds.values()) < len(texts) / 10
    lengths = [len(text.split()) for text in texts]
    assert min(lengths) == 1
    assert max(lengths) > 100


def test_documents_count_them() -> None:
    """docs/report.md has their number, and the number of kinds."""
    kinds = {other.kind for other in other_texts()}
    words = f"{len(other_texts())} texts of our own, in {len(kinds)} kinds"
    assert words in (ROOT / "docs" / "report.md").read_text()
