"""The plain tokenizer is the tokenizer: the same ids for every text it may have."""

import random
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.model.bundle import load_golden
from coldframe.model.vocabulary import Vocabulary, load_vocabulary, write_vocabulary
from coldframe.model.wordpiece import PlainWordpiece, is_plain

ASCII = "".join(map(chr, range(128)))
words = st.text(string.ascii_letters + string.digits, min_size=1, max_size=130)


@pytest.fixture(scope="module")
def library(encoder_dir: Path) -> Tokenizer:
    """What the plain tokenizer has to be equal to."""
    return Tokenizer.from_file(str(encoder_dir / "tokenizer.json"))


@pytest.fixture(scope="module")
def vocabulary(library: Tokenizer) -> dict[str, int]:
    ids: dict[str, int] = library.get_vocab(with_added_tokens=True)
    return ids


@settings(max_examples=400)
@given(text=st.text(ASCII) | st.lists(words | st.sampled_from(string.punctuation)).map(" ".join))
def test_same_ids(encoder_dir: Path, library: Tokenizer, text: str) -> None:
    """Any ASCII text without a special token's name gets the ids that the library gives it."""
    plain = PlainWordpiece(load_vocabulary(encoder_dir).get)
    if is_plain(text):
        assert plain.ids(text) == library.encode(text, add_special_tokens=False).ids


def test_same_ids_for_words_of_the_language(
    encoder_dir: Path, library: Tokenizer, vocabulary: dict[str, int]
) -> None:
    """The same for words made of the vocabulary's own pieces, which random letters seldom are."""
    plain = PlainWordpiece(load_vocabulary(encoder_dir).get)
    chance = random.Random(0)
    pieces = [token.removeprefix("##") for token in vocabulary if token.isascii()]
    for _ in range(300):
        drawn = ["".join(chance.choices(pieces, k=chance.choice([1, 1, 2, 3]))) for _ in range(20)]
        text = " ".join(drawn).title()
        if is_plain(text):
            assert plain.ids(text) == library.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("text", ["naïve", "東京", "a [SEP] b", "[CLS]", "x[MASK]"])
def test_not_plain(text: str) -> None:
    """What needs Unicode tables, or names a special token, is left to the library."""
    assert not is_plain(text)


def test_own_texts(encoder_dir: Path, library: Tokenizer) -> None:
    """The golden texts that are plain get the library's ids."""
    plain = PlainWordpiece(load_vocabulary(encoder_dir).get)
    texts = [vector.text for vector in load_golden(encoder_dir).vectors if is_plain(vector.text)]
    assert len(texts) > 20
    for text in texts:
        assert plain.ids(text) == library.encode(text, add_special_tokens=False).ids


def test_every_token_is_found(encoder_dir: Path, vocabulary: dict[str, int]) -> None:
    """Each token of the vocabulary is found by search, and again once the file is read whole."""
    first = load_vocabulary(encoder_dir)
    for token in random.Random(0).sample(sorted(vocabulary), 200):
        assert first.get(token) == vocabulary[token]
    found = load_vocabulary(encoder_dir)
    assert {token: found.get(token) for token in vocabulary} == vocabulary


tokens = st.text(st.characters(exclude_characters=" \n", exclude_categories=["Cs"]), min_size=1, max_size=5)


@given(st.dictionaries(tokens, st.integers(0, 99_999), min_size=1), st.lists(tokens))
def test_what_is_written_is_found(ids: dict[str, int], others: list[str]) -> None:
    """A vocabulary finds what it was written from, and nothing else."""
    vocabulary = Vocabulary(write_vocabulary(ids))
    for token in [*ids, *others]:
        assert vocabulary.get(token) == ids.get(token)


def test_unusable_vocabulary(tmp_path: Path) -> None:
    """A vocabulary that is missing, cut off or of something else is named."""
    with pytest.raises(BundleMissing, match=r"vocabulary\.txt"):
        load_vocabulary(tmp_path)
    (tmp_path / "vocabulary.txt").write_bytes(b"the 1")
    with pytest.raises(BundleCorrupt, match="line end"):
        load_vocabulary(tmp_path)
    (tmp_path / "vocabulary.txt").write_bytes(b"the 1\n")
    with pytest.raises(BundleCorrupt, match=r"has no token \[CLS\]"):
        load_vocabulary(tmp_path)["[CLS]"]
