"""Words of a caller's text with their tokens, and spans of them that explanations leave out."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from coldframe.model.tokenizer import TextTokenizer, as_spaced, content_tokens, normalise
from coldframe.timing import Deadline

_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]+")
_GROUP = 512  # words


class Span(Struct, frozen=True):
    """Adjacent words: characters `start` to `end` of a text, tokens `first` to `last` of its content."""

    start: int
    end: int
    first: int
    last: int


class WordsUnknown(Exception):
    """The tokens of a text are not those of its words, one after the other."""


def words_of(text: str, content: Sequence[int], tokenizer: TextTokenizer, deadline: Deadline) -> list[Span]:
    """The words whose tokens are used. content: the text's own tokens.

    A word ends at white space and around each ideograph, which no token crosses. Raises WordsUnknown for
    a tokenizer whose tokens cross them, and the errors of `Deadline.check`.
    """
    words: list[Span] = []
    position = 0
    places = (match.span() for match in _WORD.finditer(as_spaced(text)))
    while position < len(content) and (group := list(islice(places, _GROUP))):
        for (start, end), ids in zip(group, _tokens(text, group, tokenizer, deadline), strict=True):
            used = ids[: len(content) - position]
            if used != content[position : position + len(used)]:
                raise WordsUnknown
            if used:
                words.append(Span(start, end, position, position + len(used)))
            position += len(used)
    if position < len(content):
        raise WordsUnknown
    return words


def spans_of(words: Sequence[Span], at_most: int) -> list[Span]:
    """The words, or spans of equally many adjacent words where there are more than `at_most`."""
    size = -(-len(words) // at_most) or 1
    groups = (words[i : i + size] for i in range(0, len(words), size))
    return [Span(group[0].start, group[-1].end, group[0].first, group[-1].last) for group in groups]


def _tokens(
    text: str, places: Sequence[tuple[int, int]], tokenizer: TextTokenizer, deadline: Deadline
) -> Iterator[list[int]]:
    cut = tokenizer.cut([normalise(text[start:end]) for start, end in places], deadline)
    return (content_tokens(windows) for windows in cut)
