"""The form of a text that everything else works on."""

from coldframe.errors import Invalid


def normalise(text: str) -> str:
    """The form in which a text is compared and tokenized: white space runs are one space.

    Raises Invalid for lone surrogates: they are no Unicode text, and no tokenizer takes them.
    """
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise Invalid("A text holds a lone surrogate, no Unicode character. Send valid Unicode.") from exc
    return " ".join(text.split())
