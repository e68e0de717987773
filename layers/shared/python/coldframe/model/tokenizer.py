"""Texts to rows of token ids: normal form, WordPiece or Unigram, then windows of at most `max_tokens`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from coldframe.errors import BundleCorrupt, Invalid
from coldframe.model.bundle import EncoderFacts
from coldframe.model.files import TOKENIZER, read_file
from coldframe.model.first_tokens import first_tokens
from coldframe.model.vocabulary import load_vocabulary, mark_fragments
from coldframe.model.wordpiece import load_plain
from coldframe.timing import NO_DEADLINE, Deadline

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Window: TypeAlias = list[int]
"""Token ids of one row of a forward pass, with the tokens around them."""


class PrefixedWindow(list[int]):
    """A window whose text begins at `content_start`. An encoder with a prefix repeats it in each window."""

    def __init__(self, ids: Iterable[int], content_start: int) -> None:
        super().__init__(ids)
        self.content_start = content_start


_PART = 65_536  # characters
_NOTHING = dict.fromkeys([0x0B, 0x0C, *range(0x1C, 0x20), 0x85])
"""White space to Python, but control characters to BERT's tokenizer, which drops them."""
_NOTHING_CHARACTERS = "".join(map(chr, _NOTHING))
_CHARACTERS_PER_TOKEN = 8  # English has four to five: twice as many nearly always hold enough tokens
_SHORT = 4096  # characters
_GROUP = 65_536  # characters: their tokens take about 10 MB in the library


def normalise_all(texts: Sequence[str], deadline: Deadline) -> list[str]:
    """Texts in normal form. Raises Invalid, and the errors of `Deadline.check`."""
    normalised = []
    for text in texts:
        deadline.check()
        normalised.append(normalise(text, deadline.check))
    return normalised


def normalise(text: str, check: Callable[[], None] = lambda: None) -> str:
    """The form in which a text is compared and tokenized: runs of white space become one space.

    White space is defined as in BERT's tokenizer. Raises Invalid for lone surrogates: they are not
    Unicode text, and no tokenizer accepts them.

    check: called before each part of a long text; it raises when the caller's time is over.
    """
    if len(text) <= _PART:
        return " ".join(_clean(text).split())
    return "".join(_parts(text, check))


def as_spaced(text: str) -> str:
    """A text of the same length in which only BERT's white space is white space."""
    return text.translate(dict.fromkeys(_NOTHING, "\0"))


def _parts(text: str, check: Callable[[], None]) -> Iterator[str]:
    """A long text, normalised in parts: all its words as objects would take ten times its size."""
    has_begun = is_apart = False  # is_apart: there is white space between this part and the last word
    for start in range(0, len(text), _PART):
        check()
        part = _clean(text[start : start + _PART])
        words = " ".join(part.split())
        is_apart = is_apart or part[:1].isspace()
        if words:
            yield " " + words if has_begun and is_apart else words
            has_begun, is_apart = True, part[-1].isspace()


def _clean(part: str) -> str:
    """The part without characters that are white space to Python alone."""
    try:
        if not part.isascii():
            part.encode()
    except UnicodeEncodeError as exc:
        raise Invalid(
            "A text holds a lone surrogate, which is not a Unicode character. Send valid Unicode."
        ) from exc
    if any(character in part for character in _NOTHING_CHARACTERS):
        return part.translate(_NOTHING)
    return part


class TextTokenizer(Protocol):
    """A tokenizer. Safe for threads."""

    def cut(self, texts: Sequence[str], deadline: Deadline) -> list[list[Window]]: ...

    def count_fragments(self, ids: Sequence[int]) -> int: ...


class TextWindows:
    """Tokenizes plain texts in Python; the library for other texts is loaded at its first use."""

    def __init__(self, folder: Path, facts: EncoderFacts, use_plain: bool = True) -> None:
        """use_plain: False where many processors tokenize many texts at once: the library is quicker then.

        Raises BundleMissing or BundleCorrupt when `folder` has no usable vocabulary.
        """
        self._folder = folder
        self._use_plain = use_plain
        self._facts = facts
        self._content_tokens, self._max_windows = facts.content_tokens, facts.max_windows
        self._needed = self._content_tokens * self._max_windows
        self._plain = load_plain(folder, facts.tokenizer, facts.lower_case, facts.lower_texts)
        vocabulary = load_vocabulary(folder)
        self._begin, self._end = vocabulary[facts.begin], vocabulary[facts.end]

    def cut(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> list[list[Window]]:
        """Windows of each text, in input order; at least one per text, at most `max_windows`.

        Raises OutOfTime when the deadline passes before all texts are tokenized.
        """
        plain, needed = self._plain, self._needed
        ids: list[list[int] | None] = [None] * len(texts)
        for i, text in enumerate(texts if self._use_plain else ()):
            deadline.check()
            beginning = _beginning(text, needed * _CHARACTERS_PER_TOKEN)
            if plain.is_plain(beginning):
                ids[i] = row = plain.ids(beginning, needed)
                if len(row) < needed and len(beginning) < len(text):  # long words
                    ids[i] = plain.ids(text, needed) if plain.is_plain(text) else None
        others = [i for i, row in enumerate(ids) if row is None]
        for i, row in zip(others, self._library_ids([texts[i] for i in others], deadline), strict=True):
            ids[i] = row
        return [self._windows(row or []) for row in ids]

    def count_fragments(self, ids: Sequence[int]) -> int:
        """Number of these tokens that continue a word. The first call reads the vocabulary."""
        return sum(map(self._fragments.__getitem__, ids))

    def load(self) -> None:
        """Loads the tokenizer before a text needs it.

        Raises BundleMissing or BundleCorrupt when the bundle has no usable one.
        """
        _ = self._tokenizer

    def _library_ids(self, texts: Sequence[str], deadline: Deadline) -> Iterator[list[int]]:
        """Ids of each text, as many as are used. Short texts go to the library in groups."""
        if self._facts.lower_texts:
            texts = [text.lower() for text in texts]
        for group in _groups(texts):
            deadline.check()
            if len(group) > 1 or len(group[0]) <= _SHORT:
                encodings = self._tokenizer.encode_batch_fast(group, add_special_tokens=False)
                yield from (encoding.ids for encoding in encodings)
            else:
                yield self._first_tokens(group[0], deadline)

    def _first_tokens(self, text: str, deadline: Deadline) -> list[int]:
        if self._facts.tokenizer == "unigram":
            from coldframe.model.unigram import first_pieces

            return first_pieces(self._tokenizer, text, self._needed, deadline.check)
        return first_tokens(self._tokenizer, text, self._needed, deadline.check)

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        content = read_file(self._folder, TOKENIZER)
        try:
            return Tokenizer.from_buffer(content)
        except Exception as exc:  # tokenizers raises bare Exception
            raise BundleCorrupt(f"{TOKENIZER} cannot be read: {exc}. Run `coldframe build`.") from exc

    @cached_property
    def _fragments(self) -> bytearray:
        return mark_fragments(self._folder, self._facts.tokenizer)

    def _windows(self, ids: list[int]) -> list[Window]:
        size, begin, end = self._content_tokens, self._begin, self._end
        starts = range(0, max(1, len(ids)), size)[: self._max_windows]
        if prefix := self._facts.prefix_tokens:
            rows = ([begin, *prefix, *ids[start : start + size], end] for start in starts)
            return [PrefixedWindow(row, 1 + len(prefix)) for row in rows]
        return [[begin, *ids[start : start + size], end] for start in starts]


def content_tokens(windows: Sequence[Window]) -> list[int]:
    """The text's own tokens in its windows."""
    if windows and isinstance(windows[0], PrefixedWindow):  # then all windows have one
        return [token for window in windows for token in window[windows[0].content_start : -1]]
    return [token for window in windows for token in window[1:-1]]


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Groups of adjacent texts: short ones together, each long one alone."""
    group: list[str] = []
    characters = 0
    for text in texts:
        if group and (len(text) > _SHORT or characters + len(text) > _GROUP):
            yield group
            group, characters = [], 0
        group.append(text)
        characters += len(text) if len(text) <= _SHORT else _GROUP
    if group:
        yield group


def _beginning(text: str, characters: int) -> str:
    """The first words of a text, about `characters` long, or just as long where there is no space to cut at.

    Tokens never cross a space, so these words' tokens are the text's first ones.
    """
    space = text.rfind(" ", 0, characters) if len(text) > characters else -1
    return text[:space] if space > 0 else text
