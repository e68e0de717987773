"""WordPiece for plain text, in plain Python: the tokens of the `tokenizers` library, without the library.

Importing and loading the `tokenizers` library takes a third of the time in which a
cold environment can give its first answer. Most texts are ASCII, and for ASCII the
rules of BERT's tokenizer need no Unicode tables; `docs/decisions/0024` has the
measurement, `tests/unit/coldframe/model/test_wordpiece.py` compares the two.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from coldframe.model.vocabulary import load_vocabulary

UNKNOWN = "[UNK]"
SPECIAL_TOKENS = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
)  # tokens themselves, where a text contains them

_MAX_WORD = 100  # characters; a longer word is unknown
_LONG_TEXT = 10_000  # characters
_CONTROL = {code: None for code in [*range(32), 127] if chr(code) not in "\t\n\r"}
_WORDS = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")  # a punctuation mark is a word


def is_plain(text: str) -> bool:
    """Whether `PlainWordpiece` can tokenize this text."""
    return text.isascii() and not ("[" in text and any(token in text for token in SPECIAL_TOKENS))


class PlainTokenizer(Protocol):
    """Tokenizes plain texts without the library."""

    def is_plain(self, text: str) -> bool: ...

    def ids(self, text: str, at_most: int | None = None) -> list[int]: ...


def load_plain(
    folder: Path, tokenizer: str = "wordpiece", lower_case: bool = True, lower_texts: bool = False
) -> PlainTokenizer:
    """The plain tokenizer of the encoder in `folder`, by the encoder's facts.

    Raises BundleMissing or BundleCorrupt.
    """
    if tokenizer == "unigram":
        from coldframe.model.unigram import load_unigram

        return load_unigram(folder, lower_texts)
    return PlainWordpiece(load_vocabulary(folder).get, lower_case or lower_texts)


class PlainWordpiece:
    """Plain text to token ids.

    Source: greedy longest match first, Devlin et al. 2018 and Wu et al. 2016, section 4.1.
    """

    is_plain = staticmethod(is_plain)

    def __init__(self, find: Callable[[str], int | None], lower_case: bool = True) -> None:
        """find: returns the id of a token, None for any other string."""
        self._find = find
        self._lower_case = lower_case

    def ids(self, text: str, at_most: int | None = None) -> list[int]:
        """The first ids of a text for which `is_plain`, without [CLS] and [SEP]; all of them by default."""
        ids: list[int] = []
        text = text.translate(_CONTROL)
        for word in _words(text.lower() if self._lower_case else text):
            if at_most is not None and len(ids) >= at_most:
                break
            whole = self._find(word) if len(word) <= _MAX_WORD else None
            if whole is not None:
                ids.append(whole)
            else:
                ids += self._pieces(word)
        return ids[:at_most]

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _MAX_WORD:
            return self._unknown()
        pieces: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._find(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return self._unknown()
            pieces.append(piece)
            start, prefix = end, "##"
        return pieces

    def _unknown(self) -> list[int]:
        unknown = self._find(UNKNOWN)
        return [] if unknown is None else [unknown]


def _words(text: str) -> Iterable[str]:
    """All words at once if there are few, which is quicker; one after the other if there may be millions."""
    if len(text) <= _LONG_TEXT:
        return _WORDS.findall(text)
    return (match[0] for match in _WORDS.finditer(text))
