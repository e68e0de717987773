"""The plain Unigram tokenizer is the tokenizer: the same ids for every text it may have."""

import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from coldframe.errors import BundleCorrupt, BundleMissing, OutOfTime
from coldframe.model.pieces import Pieces, load_pieces
from coldframe.model.tokenizer import normalise
from coldframe.model.unigram import PlainUnigram, first_pieces
from coldframe_training.encoder_build.calibration_texts import own_texts
from coldframe_training.encoder_build.tokenizer_files import pieces_of

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
LETTERS = "abcABC 019.,!-'éßñİΣσжЖ中文字かな한국"
ODD = "\t\x00\x0b\u0301\u00a0\u200bﬁＡ①🚀👍🏽กำאָ한▁<>/"
texts = st.lists(
    st.text(LETTERS, max_size=12) | st.text(LETTERS + ODD, max_size=6) | st.sampled_from(SPECIAL), max_size=8
).map(" ".join)


def nmt_nfkc() -> normalizers.Normalizer:
    """What the charsmap of XLM-R does, by the library's own parts."""
    runs = normalizers.Replace(Regex(" {2,}"), " ")
    return normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), runs])


def made(pieces: list[tuple[str, float]], unknown: int = 0) -> Tokenizer:
    """A tokenizer of the XLM-R family with these pieces."""
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=unknown, byte_fallback=False))
    tokenizer.normalizer = nmt_nfkc()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    return tokenizer


def plain_of(tokenizer: Tokenizer) -> PlainUnigram:
    return PlainUnigram(Pieces(pieces_of(tokenizer)))


@pytest.fixture(scope="module")
def library() -> Tokenizer:
    """A tokenizer that was trained on our own texts, of many scripts."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = nmt_nfkc()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=1200, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(own_texts(), trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return Tokenizer.from_str(tokenizer.to_str())


@pytest.fixture(scope="module")
def plain(library: Tokenizer) -> PlainUnigram:
    return plain_of(library)


@settings(max_examples=600, deadline=None)
@given(text=texts)
def test_same_ids(library: Tokenizer, plain: PlainUnigram, text: str) -> None:
    """Any normalised text that is plain gets the ids that the library gives it."""
    text = normalise(text)
    if plain.is_plain(text):
        assert plain.ids(text) == library.encode(text, add_special_tokens=False).ids


scores = st.floats(-20, 0) | st.sampled_from([-1.0, -2.0, -3.0])  # equal sums are frequent, too
pieces = st.dictionaries(st.text("▁abé中", min_size=1, max_size=4), scores, max_size=12)


@settings(max_examples=600, deadline=None)
@given(pieces=pieces, position=st.integers(0, 12), words=st.lists(st.text("abé中", min_size=1, max_size=9)))
def test_same_segmentation_with_any_pieces(pieces: dict[str, float], position: int, words: list[str]) -> None:
    """With any pieces and scores, ties and characters without a piece included."""
    listed = list(pieces.items())
    listed.insert(position, ("<unk>", 0.0))
    tokenizer = made([*listed, ("▁ab", -4.0), ("中é", -4.0)], min(position, len(pieces)))
    plain, text = plain_of(tokenizer), " ".join(words)
    if plain.is_plain(text):
        assert plain.ids(text) == tokenizer.encode(text, add_special_tokens=False).ids


def test_most_own_texts_are_plain(library: Tokenizer, plain: PlainUnigram) -> None:
    """Texts of all scripts but those that are written with marks are plain, and cut as by the library."""
    own = [normalise(text) for text in own_texts() if len(text) < 1000]
    found = [text for text in own if plain.is_plain(text)]
    assert len(found) > 0.8 * len(own)
    assert any("Köln" in text for text in found)
    assert any("雪" in text for text in found)
    for text in found:
        assert plain.ids(text) == library.encode(text, add_special_tokens=False).ids
        assert plain.ids(text, 3) == plain.ids(text)[:3]


@pytest.mark.parametrize(
    "text", ["a <s> b", "x</s>", "▁a", "ﬁ", "e\u0301", "a\u200bb", "🚀", "กำ", "\x00", "Ａ"]
)
def test_not_plain(plain: PlainUnigram, text: str) -> None:
    """What the normaliser changes or may change, and what names a special token, is left to the library."""
    assert not plain.is_plain(text)


def test_a_long_word_is_left_to_the_library(plain: PlainUnigram) -> None:
    """The work for one word is bounded."""
    assert plain.is_plain("a " * 5000)
    assert not plain.is_plain("a" * 5000)


def test_lower_cased_texts(library: Tokenizer, plain: PlainUnigram) -> None:
    """Where texts are lower-cased first, plain ones are cut as their lower case."""
    lowering = PlainUnigram(Pieces(pieces_of(library)), lower_texts=True)
    assert lowering.ids("WHY IS NOBODY") == plain.ids("why is nobody") != plain.ids("WHY IS NOBODY")
    assert not lowering.is_plain("İ")  # its lower case has a mark


def test_an_unknown_normaliser_leaves_everything_to_the_library(library: Tokenizer) -> None:
    """Where it is not known what the normaliser does to a sequence, no text is plain."""
    other = Tokenizer.from_str(library.to_str())
    other.normalizer = normalizers.Replace("ab", "ba")
    assert not plain_of(other).is_plain("a b")


@settings(max_examples=300, deadline=None)
@given(text=texts, part=st.integers(2, 40), limit=st.integers(1, 60))
def test_parts_give_the_first_tokens(library: Tokenizer, text: str, part: int, limit: int) -> None:
    """By the library, in parts of any size, a text has the first tokens that it has when read at once."""
    text = normalise(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coldframe.model.unigram._PART", part)
        found = first_pieces(library, text, limit, lambda: None)
    assert found == library.encode(text, add_special_tokens=False).ids[:limit]


class Counting:
    """The library's tokenizer, and the longest text that it was given."""

    def __init__(self, library: Tokenizer) -> None:
        self._library = library
        self.longest = 0

    def encode(self, text: str, add_special_tokens: bool) -> Any:
        self.longest = max(self.longest, len(text))
        return self._library.encode(text, add_special_tokens=add_special_tokens)


@pytest.mark.parametrize(
    "text", ["雪" * 300_000, "🚀 " * 300_000, "กำ แล " * 100_000], ids=["word", "marks", "Thai"]
)
def test_only_what_is_used_is_read(library: Tokenizer, text: str) -> None:
    """Of a text that has no end, a bounded part is read, and its first ids are those of the whole."""
    counting, text = Counting(library), normalise(text)
    found = first_pieces(counting, text, 1000, lambda: None)
    assert found == library.encode(text[:20_000], add_special_tokens=False).ids[:1000]
    assert counting.longest <= 70_000


def test_time_is_checked_between_parts(library: Tokenizer) -> None:
    """A deadline ends the reading of a long text in the middle."""

    def over() -> None:
        raise OutOfTime("over")

    with pytest.raises(OutOfTime):
        first_pieces(library, "a b " * 10_000, 1000, over)


def test_scores_are_the_librarys() -> None:
    """The library reads some numbers of its file a last bit beside them; pieces have what it reads."""
    dice = random.Random(0)
    listed = [("<unk>", 0.0), *((chr(0x4E00 + i), -15 * dice.random()) for i in range(500))]
    read = Tokenizer.from_str(made(listed).to_str())
    found = Pieces(pieces_of(read))
    scores = {piece: found.prefixes(piece.encode(), 0)[0][2] for piece, _ in listed[1:]}
    beside = [piece for piece, score in listed[1:] if scores[piece] != score]
    assert 20 < len(beside) < 200
    assert all(scores[piece] == pytest.approx(score, abs=1e-12) for piece, score in listed[1:])


@pytest.fixture
def restless_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless_threads")
def test_many_threads_share_one(library: Tokenizer) -> None:
    """However many threads share a new tokenizer, each gets the ids of its texts."""
    texts = [text for text in map(normalise, own_texts()) if len(text) < 200]
    expected = [library.encode(text, add_special_tokens=False).ids for text in texts]
    for _ in range(5):
        shared = plain_of(library)
        begin = threading.Barrier(8)

        def ids(shared: PlainUnigram, begin: threading.Barrier) -> list[list[int] | None]:
            begin.wait()
            return [shared.ids(text) if shared.is_plain(text) else None for text in texts]

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(ids, [shared] * 8, [begin] * 8))
        for of_one in found:
            assert sum(row is not None for row in of_one) > 30
            pairs = zip(of_one, expected, strict=True)
            assert all(row == wanted for row, wanted in pairs if row is not None)


def test_unusable_pieces(tmp_path: Path) -> None:
    """A file of pieces that is missing, cut off or of something else is named."""
    with pytest.raises(BundleMissing, match=r"pieces\.bin"):
        load_pieces(tmp_path)
    for content in (b"the 1\n", b'{"ids": 1}\n', b"x"):
        (tmp_path / "pieces.bin").write_bytes(content)
        with pytest.raises(BundleCorrupt, match=r"pieces\.bin cannot be read"):
            load_pieces(tmp_path)
