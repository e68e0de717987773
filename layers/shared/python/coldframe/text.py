"""The form of a text that everything else works on."""

import re
from collections.abc import Iterator

from coldframe.errors import Invalid

_SPACE = re.compile(r"\s")
_PART = 65_536  # characters


def normalise(text: str) -> str:
    """The form in which a text is compared and tokenized: white space runs are one space.

    Raises Invalid for lone surrogates: they are no Unicode text, and no tokenizer takes them.
    """
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError as exc:
        raise Invalid("A text holds a lone surrogate, no Unicode character. Send valid Unicode.") from exc
    if len(text) <= _PART:
        return " ".join(text.split())
    return " ".join(filter(None, _parts(text)))


def _parts(text: str) -> Iterator[str]:
    """A long text, normalised in parts: its words as objects of their own take ten times its size."""
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + _PART)
        end = space.start() if space else len(text)
        yield " ".join(text[start:end].split())
        start = end
