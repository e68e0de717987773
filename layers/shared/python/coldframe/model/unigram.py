"""Unigram for plain text, in plain Python: the pieces of the `tokenizers` library, without the library.

A text is *plain* if the tokenizer's normaliser changes no character of it, alone or in combination; the
build checks each character. Other texts go to the library, which is loaded for the first of them.
`docs/decisions/0034` has the measurement, `tests/unit/coldframe/model/test_unigram.py` compares the two.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from coldframe.model.pieces import Pieces, load_pieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SPACE = "▁".encode()  # in front of each word
_LONGEST_WORD = 1000  # characters; the library takes a tenth of the time for longer texts
_KEPT_WORDS = 8192
_PART = 4096  # characters
_WHOLE_WORD = 65_536  # characters: only these are read of a longer word


def load_unigram(folder: Path, lower_texts: bool = False) -> "PlainUnigram":
    """The plain tokenizer of the encoder in `folder`. Raises BundleMissing or BundleCorrupt."""
    return PlainUnigram(load_pieces(folder), lower_texts)


class PlainUnigram:
    """Plain text to token ids. Safe for threads.

    Source: the most probable segmentation, Kudo 2018, section 3.2; Viterbi's search over it.
    """

    def __init__(self, pieces: Pieces, lower_texts: bool = False) -> None:
        self._pieces = pieces
        self._lower_texts = lower_texts
        self._word_ids = functools.lru_cache(_KEPT_WORDS)(self._best_pieces)

    def is_plain(self, text: str) -> bool:
        """Whether this tokenizer, with `ids`, can tokenize the text."""
        text = self._as_tokenized(text)
        return (
            self._pieces.plain.issuperset(text)
            and not any(token in text for token in self._pieces.special)
            and max(map(len, text.split()), default=0) <= _LONGEST_WORD
        )

    def ids(self, text: str, at_most: int | None = None) -> list[int]:
        """The first ids of a plain text, without the tokens around it; all of them by default."""
        ids: list[int] = []
        for word in self._as_tokenized(text).split():
            if at_most is not None and len(ids) >= at_most:
                break
            ids += self._word_ids(word)
        return ids[:at_most]

    def _as_tokenized(self, text: str) -> str:
        return text.lower() if self._lower_texts else text

    def _best_pieces(self, word: str) -> tuple[int, ...]:
        """The pieces of highest total score. Adjacent characters that no piece covers become one piece."""
        content = _SPACE + word.encode()
        ids: list[int] = []
        end = len(content)
        steps = self._best_steps(content)
        while end > 0:
            start, piece = steps[end]
            if piece == self._pieces.unknown.id:
                while start > 0 and steps[start][1] == piece:
                    start = steps[start][0]
                piece_id = self._pieces.id_of(content[start:end])
                piece = self._pieces.unknown.id if piece_id is None else piece_id
            ids.append(piece)
            end = start
        return tuple(reversed(ids))

    def _best_steps(self, content: bytes) -> list[tuple[int, int]]:
        """Start and id of the last piece in the best segmentation up to each byte."""
        scores: list[float | None] = [None] * (len(content) + 1)
        scores[0] = 0.0
        steps = [(0, 0)] * (len(content) + 1)
        unknown = self._pieces.unknown
        start = 0
        for character in content.decode():
            after = start + len(character.encode())
            till_here = scores[start] or 0.0
            candidates = self._pieces.prefixes(content, start)
            if all(end != after for end, _, _ in candidates):
                candidates.append((after, unknown.id, unknown.score))
            for end, piece, score in candidates:
                best, total = scores[end], score + till_here
                if best is None or total > best:  # the first of equals, as in the library
                    scores[end], steps[end] = total, (start, piece)
            start = after
        return steps


def first_pieces(
    tokenizer: "Tokenizer", text: str, at_most: int, check_time: Callable[[], None]
) -> list[int]:
    """The first `at_most` ids of a normalised text, by the library, with bounded work.

    Pieces never cross a space. check_time: called before each part; its exception ends the work.
    """
    ids: list[int] = []
    position = 0
    while position < len(text) and len(ids) < at_most:
        check_time()
        end = _end_of_part(text, position)
        part = text[position : min(end, position + _WHOLE_WORD)]
        ids += tokenizer.encode(part, add_special_tokens=False).ids
        position = end
    return ids[:at_most]


def _end_of_part(text: str, start: int) -> int:
    """End of a part: at a space that no normaliser joins with its neighbours."""
    end = text.rfind(" ", start + 1, start + _PART)
    while end > 0 and not _is_apart(text, end):
        end = text.rfind(" ", start + 1, end)
    if end < 0:
        end = text.find(" ", start + _PART)
        while end >= 0 and not _is_apart(text, end):
            end = text.find(" ", end + 1)
    return len(text) if end < 0 else end


def _is_apart(text: str, space: int) -> bool:
    """Whether there are letters or digits in normal form on both sides."""
    import unicodedata  # imported at its first use: the first texts do without it

    before, after = text[space - 1 : space], text[space + 1 : space + 2]
    return (before + after).isalnum() and unicodedata.is_normalized("NFKC", before + after)
