"""Texts to rows of token ids: WordPiece, then windows of at most `max_tokens`."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from coldframe.errors import BundleCorrupt
from coldframe.model.bundle import EncoderFacts
from coldframe.model.files import TOKENIZER, read_file
from coldframe.model.vocabulary import load_vocabulary
from coldframe.model.wordpiece import PlainWordpiece, is_plain

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Window: TypeAlias = list[int]
"""Token ids of one row of a forward pass, with [CLS] and [SEP]."""

_CHARACTERS_PER_TOKEN = 8  # English has four to five: twice that nearly always holds enough tokens


class TextWindows:
    """Plain texts are cut at once; the library that cuts the others is loaded for the first of them."""

    def __init__(self, folder: Path, facts: EncoderFacts) -> None:
        """Raises BundleMissing or BundleCorrupt when `folder` has no usable vocabulary."""
        self._folder = folder
        self._content_tokens = facts.max_tokens - 2  # [CLS] and [SEP] take two
        self._max_windows = facts.max_windows
        vocabulary = load_vocabulary(folder)
        self._plain = PlainWordpiece(vocabulary.get)
        self._cls, self._sep = vocabulary["[CLS]"], vocabulary["[SEP]"]

    def cut(self, texts: Sequence[str]) -> list[list[Window]]:
        """Windows of each text, in input order; at least one per text, at most `max_windows`."""
        needed = self._content_tokens * self._max_windows
        beginnings = [_beginning(text, needed * _CHARACTERS_PER_TOKEN) for text in texts]
        ids = self._ids(beginnings)
        for i, text in enumerate(texts):
            if len(ids[i]) < needed and len(beginnings[i]) < len(text):
                ids[i] = self._ids([text])[0]  # its words are long
        return [self._windows(row) for row in ids]

    def load(self) -> None:
        """Loads the tokenizer before a text needs it.

        Raises BundleMissing or BundleCorrupt when the bundle has no usable one.
        """
        _ = self._tokenizer

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        ids = [self._plain.ids(text) if is_plain(text) else [] for text in texts]
        others = [i for i, text in enumerate(texts) if not is_plain(text)]
        if others:
            encodings = self._tokenizer.encode_batch_fast(
                [texts[i] for i in others], add_special_tokens=False
            )
            for i, encoding in zip(others, encodings, strict=True):
                ids[i] = encoding.ids
        return ids

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        content = read_file(self._folder, TOKENIZER)
        try:
            return Tokenizer.from_buffer(content)
        except Exception as exc:  # tokenizers raises bare Exception
            raise BundleCorrupt(f"{TOKENIZER} cannot be read: {exc}. Run `coldframe build`.") from exc

    def _windows(self, ids: list[int]) -> list[Window]:
        size = self._content_tokens
        starts = range(0, max(1, len(ids)), size)[: self._max_windows]
        return [[self._cls, *ids[start : start + size], self._sep] for start in starts]


def content_tokens(windows: Sequence[Window]) -> list[int]:
    """The tokens of a text's windows, without their [CLS] and [SEP]."""
    return [token for window in windows for token in window[1:-1]]


def _beginning(text: str, characters: int) -> str:
    """The first words of a text, of about `characters`; all of it where it has no space to cut at.

    Tokens never reach across a space, so these words' tokens are the text's first ones.
    """
    space = text.rfind(" ", 0, characters) if len(text) > characters else -1
    return text[:space] if space > 0 else text
