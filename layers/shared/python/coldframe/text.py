"""Normal form of a text, for cache keys, tokenizers and heads."""

from collections.abc import Callable, Iterator

from coldframe.errors import Invalid

_PART = 65_536  # characters
_NOTHING = dict.fromkeys([0x0B, 0x0C, *range(0x1C, 0x20), 0x85])
"""White space to Python, but control characters to BERT's tokenizer, which drops them."""
_NOTHING_CHARACTERS = "".join(map(chr, _NOTHING))


def normalise(text: str, check: Callable[[], None] = lambda: None) -> str:
    """The form in which a text is compared and tokenized: runs of white space become one space.

    White space is defined as in BERT's tokenizer. Raises Invalid for lone surrogates: they are not
    Unicode text, and no tokenizer accepts them.

    check: called before each part of a long text; it raises when the caller's time is over.
    """
    if len(text) <= _PART:
        return " ".join(_clean(text).split())
    return "".join(_parts(text, check))


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
