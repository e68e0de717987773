"""Ids of tokens, by searching and from the whole table."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from coldframe.errors import BundleCorrupt
from coldframe.model import vocabulary
from coldframe.model.files import VOCABULARY
from coldframe.model.vocabulary import Vocabulary, mark_fragments, write_vocabulary

IDS = {f"word{number}": number for number in range(3000)}
CONTENT = write_vocabulary(IDS)


@pytest.fixture
def restless_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_every_token_has_its_id() -> None:
    """Ids are those of the file, before and after the whole of it is read; no other token has one."""
    known = Vocabulary(CONTENT)
    for number in (0, 1, 2999, *range(600)):
        assert known.get(f"word{number}") == number
        assert known.get(f"other{number}") is None


@pytest.mark.parametrize(
    ("tokenizer", "ids", "marks"),
    [
        ("wordpiece", {"[PAD]": 0, "##s": 1, "shuttle": 2, "##ing": 4}, [0, 1, 0, 0, 1]),
        ("unigram", {"▁shuttle": 0, "s": 1, "▁": 2}, [0, 1, 0]),
    ],
)
def test_tokens_that_continue_a_word_are_marked(
    tokenizer: str, ids: dict[str, int], marks: list[int], tmp_path: Path
) -> None:
    """WordPiece writes ## before such tokens; Unigram writes ▁ before all others."""
    (tmp_path / VOCABULARY).write_bytes(write_vocabulary(ids))
    assert list(mark_fragments(tmp_path, tokenizer)) == marks


def test_a_missing_token_is_named() -> None:
    """A token that has to be there is named when it is not."""
    with pytest.raises(BundleCorrupt, match=r"has no token \[CLS\]"):
        Vocabulary(CONTENT)["[CLS]"]


def test_tokens_exist_while_the_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks while somebody else is reading the whole file gets the token's id, known before or not."""
    known = Vocabulary(CONTENT)
    read_all = vocabulary._read_all
    meanwhile: list[int | None] = []

    def read_and_ask(content: bytes) -> dict[str, int]:
        if len(meanwhile) < 2:
            meanwhile.append(None)  # the one that asks reads the file as well: once is enough
            meanwhile[:] = [known.get("word5"), known.get("word2900")]
        return read_all(content)

    monkeypatch.setattr(vocabulary, "_read_all", read_and_ask)
    for number in range(400):
        assert known.get(f"word{number}") == number
    assert meanwhile == [5, 2900]


def numbers_asked(known: Vocabulary, begin: threading.Barrier, first: int) -> list[tuple[int, int | None]]:
    """Numbers of tokens, and what the vocabulary says they are."""
    begin.wait()
    return [(number, known.get(f"word{number}")) for number in range(first, first + 2000, 5)]


@pytest.mark.usefixtures("restless_threads")
def test_many_threads_on_fresh_vocabularies() -> None:
    """However many threads share a new vocabulary, each is told the id of every token."""
    with ThreadPoolExecutor(8) as threads:
        for _ in range(10):
            ask = partial(numbers_asked, Vocabulary(CONTENT), threading.Barrier(8))
            told = [pair for pairs in threads.map(ask, range(8)) for pair in pairs]
            assert [number for number, found in told if number != found] == []
