"""Texts of any kind and length to windows: the reference's first tokens, for work that is bounded."""

import math
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from coldframe.errors import CallerGone, OutOfTime
from coldframe.model import first_tokens as first_tokens_module
from coldframe.model.bundle import EncoderFacts, load_encoder_manifest
from coldframe.model.first_tokens import first_tokens
from coldframe.model.tokenizer import TextWindows, content_tokens, normalise
from coldframe.model.vocabulary import load_vocabulary
from coldframe.model.wordpiece import PlainWordpiece
from coldframe.scheduling.caller import Caller
from coldframe.timing import Deadline
from tests.conftest import ENCODER_NAME

NEEDED = 4 * 254
SCRIPTS = [
    "abcXYZ", "0129", " ", " ", " ", "\t\n\r",
    "\x00\x01\x0b\x0c\x1c\x1f\x7f\x85\u200b\u200d\u2060\ufeff\ufffd",
    "\u0301\u0308\u0323\u0340\u0344\u0f71\u0f73\u20dd\ufe0f", ".,!?[]()_-~`^$+<=>|", "。、—“”„«»¡¿؟؛।॥፡֊",
    "漢字東京語㐀豈", "\U00020000\U0002f800\U0002b820", "あいアイーｱ", "한국어각ㄱ", "กรุงเทพ",
    "ِالعربيةُ", "עִברית",
    "हिन्दी्", "தமிழ்", "ბართული", "ΑΒΓΣσςΆΈ", "АБВЙйё", "ÀÉîõüßẞİıŁøÆŉ", "ﬁﬀ",
    "🚀👩‍👩‍👧🏽🇩🇪", "ᏣᎳꭰ", "𝒜𝓑𝔄",
    "\u2028\u2029\u00a0\u3000",
    "\U0001d165\U0001d16d\u302e\u1b44", "①Ⅷ²½", "\ue000\U000f0000",
]  # fmt: skip
SPECIAL = ["[CLS]", "[SEP]", "[UNK]", "[MASK]", "[PAD]", "[CL", "S]", "[", "[cls]", "[\x01CLS]"]

pieces = st.one_of(
    *(st.text(script, min_size=1, max_size=6) for script in SCRIPTS),
    st.sampled_from(SPECIAL),
    st.sampled_from("".join(SCRIPTS)).flatmap(lambda c: st.integers(90, 120).map(lambda n: c * n)),
)
odd_texts = st.lists(pieces, max_size=30).map("".join)


@pytest.fixture(scope="module")
def library(encoder_dir: Path) -> Tokenizer:
    """The reference: the whole text at once."""
    return Tokenizer.from_file(str(encoder_dir / "tokenizer.json"))


@pytest.fixture(scope="module")
def facts(bundle: Path) -> EncoderFacts:
    return load_encoder_manifest(bundle, ENCODER_NAME).facts


class CountingTokenizer:
    """The library's tokenizer, and how much it has been asked for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.normalizer = tokenizer.normalizer
        self.characters = 0
        self.most_at_once = 0

    def encode(self, text: str, add_special_tokens: bool) -> Any:
        self._count([text])
        return self._tokenizer.encode(text, add_special_tokens=add_special_tokens)

    def encode_batch_fast(self, texts: Sequence[str], add_special_tokens: bool) -> Any:
        self._count(texts)
        return self._tokenizer.encode_batch_fast(texts, add_special_tokens=add_special_tokens)

    def _count(self, texts: Sequence[str]) -> None:
        asked = sum(map(len, texts))
        self.characters += asked
        self.most_at_once = max(self.most_at_once, asked)


@pytest.fixture
def counting(
    encoder_dir: Path, library: Tokenizer, facts: EncoderFacts
) -> tuple[TextWindows, CountingTokenizer]:
    windows, counter = TextWindows(encoder_dir, facts), CountingTokenizer(library)
    windows.__dict__["_tokenizer"] = counter
    return windows, counter


@settings(max_examples=1500, deadline=None)
@given(text=odd_texts, part=st.integers(8, 60), limit=st.integers(1, 40))
@example(  # the tokenizer sorts the marks
    text="X" * 16 + "\u05b4" * 2 + "ﬀ" * 8 + "\ue000" * 4 + " \u302e\u0301\u0301\u0301\u0323\u0301",
    part=9,
    limit=2,
)
@example(text="Xㄱ" + "А" * 6 + " " * 6 + "\u302e\u0f73X", part=8, limit=2)  # two marks in one character
def test_parts_give_the_first_tokens(library: Tokenizer, text: str, part: int, limit: int) -> None:
    """Read in parts of any size, a text of any scripts has the first tokens that it has when read at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_tokens_module, "_PART", part)
        found = first_tokens(library, text, limit, lambda: None)
    assert found == library.encode(text, add_special_tokens=False).ids[:limit]


@settings(max_examples=300, deadline=None)
@given(texts=st.lists(odd_texts, min_size=1, max_size=3), repeats=st.sampled_from([1, 30, 600]))
def test_windows_are_the_first_tokens(
    encoder_dir: Path, library: Tokenizer, facts: EncoderFacts, texts: list[str], repeats: int
) -> None:
    """Windows of short and long texts hold the reference's first tokens of the texts as they were sent."""
    sent = [text * repeats for text in texts]
    cut = TextWindows(encoder_dir, facts).cut([normalise(text) for text in sent])
    for text, windows in zip(sent, cut, strict=True):
        expected = library.encode(text, add_special_tokens=False).ids[:NEEDED]
        assert content_tokens(windows) == expected


@pytest.mark.parametrize(
    "text",
    ["漢" * 200_000, "。" * 200_000, "é " * 200_000, "日本語 " * 100_000, "é!" * 100_000, "[SEP]" * 100_000],
    ids=["CJK", "punctuation", "short words", "CJK words", "ASCII punctuation", "special tokens"],
)
def test_only_what_is_used_is_tokenized(
    counting: tuple[TextWindows, CountingTokenizer], library: Tokenizer, text: str
) -> None:
    """Of a text with more tokens than are used, the library reads a few thousand characters."""
    windows, counter = counting
    (cut,) = windows.cut([text])
    assert content_tokens(cut) == library.encode(text[:20_000], add_special_tokens=False).ids[:NEEDED]
    assert counter.characters <= 20_000


@pytest.mark.parametrize(
    "character",
    ["é", "🚀", "ก", "\u0301", "\x01", "\u200b"],
    ids=["letters", "emoji", "Thai", "mark", "control", "Cf"],
)
def test_one_giant_word(
    counting: tuple[TextWindows, CountingTokenizer], library: Tokenizer, character: str
) -> None:
    """A word without an end, and what is nothing to the tokenizer, are read once and in small parts."""
    windows, counter = counting
    text = "é" + character * 100_000 + " moon"
    (cut,) = windows.cut([text])
    assert content_tokens(cut) == library.encode(text, add_special_tokens=False).ids
    assert counter.characters <= 1.2 * len(text)
    assert counter.most_at_once <= 10_000


def test_many_texts_at_once(counting: tuple[TextWindows, CountingTokenizer]) -> None:
    """Many texts are handed over in groups of a bounded number of characters."""
    windows, counter = counting
    windows.cut([f"{number} " + "漢字" * 1500 for number in range(200)])
    assert counter.most_at_once <= 100_000


def test_plain_text_beyond_what_is_used(encoder_dir: Path, facts: EncoderFacts) -> None:
    """Of a plain text without a space, words are looked up until there are enough of them."""
    windows = TextWindows(encoder_dir, facts)
    looked_up: list[str] = []
    find = load_vocabulary(encoder_dir).get
    windows._plain = PlainWordpiece(lambda word: looked_up.append(word) or find(word))  # type: ignore[func-returns-value]
    (cut,) = windows.cut(["!" * 100_000])
    assert len(content_tokens(cut)) == NEEDED
    assert len(looked_up) <= 2 * NEEDED


def ticking(seconds: float) -> "count[float]":
    """A clock that goes on by so much whenever it is read."""
    return count(0.0, seconds)


@pytest.mark.parametrize(
    "texts",
    [["é" * 1_000_000], [f"{number} é" for number in range(50_000)], ["a b"] * 10_000],
    ids=["one giant word", "many short texts", "many plain texts"],
)
def test_deadline_covers_cutting(encoder_dir: Path, facts: EncoderFacts, texts: list[str]) -> None:
    """Cutting ends with an error soon after the deadline, in the middle of a long text or between texts."""
    clock = ticking(0.01)
    with pytest.raises(OutOfTime, match="Send"):
        TextWindows(encoder_dir, facts).cut(texts, Deadline(0.1, lambda: next(clock)))
    assert next(clock) < 0.5


class Leaving(Caller):
    """A caller who hangs up when somebody has looked often enough whether they have."""

    looks = 0

    @property
    def has_left(self) -> bool:
        self.looks += 1
        return self.looks > 3


@pytest.mark.parametrize("texts", [["a" + "\u0301" * 100_000], ["é"] * 100, ["a"] * 100])
def test_cutting_ends_when_the_caller_leaves(
    encoder_dir: Path, facts: EncoderFacts, texts: list[str]
) -> None:
    """Nobody cuts on for a caller who has hung up, be it in the middle of a long text or between texts."""
    caller = Leaving()
    with pytest.raises(CallerGone):
        TextWindows(encoder_dir, facts).cut(texts, Deadline(math.inf, caller=caller))
    assert caller.looks == 4


def test_a_short_text_is_cut_after_its_deadline(encoder_dir: Path, facts: EncoderFacts) -> None:
    """A deadline that is only just over refuses nobody: an estimator's answer a moment late is one."""
    clock = ticking(0.01)
    assert TextWindows(encoder_dir, facts).cut(["a b", "é"], Deadline(0.0, lambda: next(clock)))
