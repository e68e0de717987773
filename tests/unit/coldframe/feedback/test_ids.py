"""Ids of answers: signed, and of use to one caller alone."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.errors import BadSetting
from coldframe.feedback.ids import Answer, Signer

KEY = "a key of feedback for tests"
SIGNER = Signer(KEY)
ANSWER = Answer("sha256:3f2a9c41d77b", "auto", "sci.space", 0.91, 1_800_000_000, True, bytes(range(16)))

ANSWERS = st.builds(
    Answer,
    model=st.text(max_size=30),
    head=st.text(max_size=10),
    label=st.text(max_size=30),
    probability=st.floats(0, 1),
    moment_s=st.integers(0, 1 << 40),
    is_drawn=st.booleans(),
    nonce=st.binary(min_size=16, max_size=16),
)


@given(ANSWERS, st.text(max_size=20))
def test_an_id_returns_its_answer(answer: Answer, owner: str) -> None:
    """What is signed for a caller is read for the caller, and the id is safe in a path."""
    name = SIGNER.id_of(answer, owner)
    assert SIGNER.read(name, owner) == answer
    assert name.replace("-", "").replace("_", "").isalnum()
    assert name.isascii()


@given(st.data())
def test_any_changed_character_is_refused(data: st.DataObject) -> None:
    """An id with another character anywhere is no id: also where base64 ignores the bits."""
    name = SIGNER.id_of(ANSWER, "ann")
    place = data.draw(st.integers(0, len(name) - 1))
    other = data.draw(st.characters(max_codepoint=0x17F).filter(lambda each: each != name[place]))
    assert SIGNER.read(name[:place] + other + name[place + 1 :], "ann") is None


@given(st.text(max_size=200))
def test_no_text_is_an_id(text: str) -> None:
    """Any text is refused without an error."""
    assert SIGNER.read(text, "") is None


def test_an_id_belongs_to_one_caller_and_one_key() -> None:
    """Neither another caller nor another key reads an id."""
    name = SIGNER.id_of(ANSWER, "ann")
    assert SIGNER.read(name, "bob") is None
    assert SIGNER.read(name, "") is None
    assert Signer(KEY + "!").read(name, "ann") is None


def test_a_caller_cannot_claim_the_end_of_an_answer() -> None:
    """The signature tells where the answer ends and the caller's name begins."""
    short = msgspec.structs.replace(ANSWER, label="")
    assert SIGNER.id_of(short, "x") != SIGNER.id_of(ANSWER, "x")
    assert SIGNER.read("A" * 4000, "ann") is None


def test_a_short_key_is_refused_and_not_shown() -> None:
    """The error names the setting and not the key."""
    with pytest.raises(BadSetting) as refused:
        Signer("secret")
    assert "COLDFRAME_FEEDBACK_KEY has 6 characters" in str(refused.value)
    assert "secret" not in str(refused.value)
