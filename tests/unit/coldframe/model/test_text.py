"""The form of a text that everything else works on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.errors import Invalid
from coldframe.model import tokenizer
from coldframe.model.tokenizer import normalise

SPACES = st.text(alphabet=" \t\n\r\xa0\u2028\u3000", max_size=4)
WORDS = st.text(alphabet="aé日🚀.-", max_size=8)
NOTHING = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"


@given(st.lists(st.tuples(SPACES, WORDS)), st.integers(1, 20))
def test_long_texts_as_short_ones(pieces: list[tuple[str, str]], part: int) -> None:
    """A text normalised in parts is the text normalised at once, wherever the parts end."""
    text = "".join(space + word for space, word in pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "_PART", part)
        assert normalise(text) == " ".join(text.split())


@given(st.lists(st.tuples(SPACES, st.text(NOTHING, max_size=2), WORDS)), st.integers(1, 20))
def test_control_characters_are_no_space(pieces: list[tuple[str, str, str]], part: int) -> None:
    """What Python calls white space and BERT's tokenizer a control character is as if it were not there."""
    sent = "".join(space + nothing + word for space, nothing, word in pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "_PART", part)
        assert normalise(sent) == normalise("".join(space + word for space, _, word in pieces))


@pytest.mark.parametrize("text", ["a \ud800", "a " * 100_000 + "\udfff"])
def test_lone_surrogates(text: str) -> None:
    """A lone surrogate is refused, also at the end of a long text."""
    with pytest.raises(Invalid, match="surrogate"):
        normalise(text)


def test_long_text_is_given_up_between_its_parts() -> None:
    """A text of a million characters is checked at least every 65,536 characters, and ends with the check."""
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        normalise("word " * 200_000, check)
    checks = 3
    assert len(normalise("word " * 200_000, check)) == 999_999
    assert checks - 3 >= 1_000_000 / 65_536
