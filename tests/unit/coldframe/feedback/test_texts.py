"""Texts of feedback: sealed for those who train, and stored only where the deployment says so."""

from __future__ import annotations

import importlib.util
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.api.api import Api
from coldframe.config import Settings
from coldframe.errors import BadSetting
from coldframe.feedback.ids import Answer, Signer
from coldframe.feedback.table import FeedbackTable
from coldframe.feedback.texts import (
    MAX_TEXT_BYTES,
    BadKey,
    SealedText,
    TextOpener,
    TextSealer,
    UnreadableText,
    new_keys,
)
from coldframe.timing import StartMark
from tests.conftest import served, tiny_predictor
from tests.unit.coldframe.feedback.test_routes import DAY_S, KEY, NOW_S, SECRET, Here

PUBLIC, PRIVATE = new_keys()
OPENER = TextOpener([PRIVATE])
ANSWER = Answer("sha256:1", "auto", "sci.space", 0.75, NOW_S, True, bytes(16))


@given(st.text())
def test_a_text_opens_with_its_key_and_answer_alone(text: str) -> None:
    """Whoever trains reads the text; neither another key nor another answer opens it."""
    sealed = TextSealer(PUBLIC).seal(text, ANSWER)
    assert OPENER.open(sealed, ANSWER.nonce) == text
    with pytest.raises(UnreadableText, match="was changed"):
        OPENER.open(sealed, bytes(15) + b"1")
    with pytest.raises(UnreadableText, match="another key"):
        TextOpener([new_keys()[1]]).open(sealed, ANSWER.nonce)


def test_the_same_text_is_sealed_differently_each_time() -> None:
    """The table does not show which texts are equal."""
    sealer = TextSealer(PUBLIC)
    first, second = sealer.seal(SECRET, ANSWER), sealer.seal(SECRET, ANSWER)
    assert first.content != second.content
    assert SECRET.encode() not in first.content


def test_keys_change_without_losing_texts() -> None:
    """A file with the old and the new secret key opens texts of both."""
    public, private = new_keys()
    both = TextOpener([private, PRIVATE])
    assert [both.open(TextSealer(key).seal(SECRET, ANSWER), ANSWER.nonce) for key in (PUBLIC, public)] == [
        SECRET,
        SECRET,
    ]


@pytest.mark.parametrize(
    "key",
    ["x", PRIVATE, PUBLIC[:-4], PUBLIC + "é", PUBLIC.replace("-public-", "-")],
    ids=["short", "secret", "cut", "not ASCII", "no kind"],  # the same in every process of a run
)
def test_only_a_public_key_is_a_setting(key: str) -> None:
    """A secret key in the deployment's settings stops the start, and no message shows it."""
    with pytest.raises(BadSetting) as refused:
        TextSealer(key)
    assert "COLDFRAME_FEEDBACK_TEXT_KEY is not a public key" in str(refused.value)
    assert key not in str(refused.value) or key == "x"


def test_only_secret_keys_open() -> None:
    """A public key, or none, is refused in place of a secret one."""
    for keys in ([PUBLIC], []):
        with pytest.raises(BadKey, match="coldframe feedback keys"):
            TextOpener(keys)


def test_a_missing_library_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that could not encrypt says what to install, before it answers."""
    monkeypatch.setattr("coldframe.feedback.texts.find_spec", lambda name: None)
    with pytest.raises(BadSetting, match=r"Install coldframe\[feedback\]"):
        Api(served(tiny_predictor()), Settings(feedback_key=KEY, feedback_text_key=PUBLIC), StartMark())
    assert importlib.util.find_spec("cryptography")


class Storing(Here):
    """An API that stores texts."""

    settings = Settings(
        feedback_key=KEY, feedback_table="feedback", feedback_sample=0.5, feedback_text_key=PUBLIC
    )

    def send_text(self, name: str, label: str, text: str | None = SECRET) -> str:
        """Outcome of a label with its text."""
        item = {"id": name, "label": label} | ({"text": text} if text is not None else {})
        reply = self.answer("POST", "/v1/feedback", {"feedback": [item]})
        assert reply.status == 200
        return str(msgspec.json.decode(reply.body)["results"][0]["outcome"])

    def texts(self) -> list[tuple[str, str]]:
        """Texts and labels that are stored."""
        return [(OPENER.open(row.sealed, row.nonce), row.label) for row in self.table.texts()]


@pytest.fixture
def here(client: Any) -> Storing:
    """An API that stores texts."""
    return Storing(client)


@pytest.fixture
def label(here: Storing) -> str:
    """A label of the model."""
    return here.api.models.default.manifest.labels[0]


def test_a_text_is_stored_with_its_label(here: Storing, label: str) -> None:
    """The row names the model, its version, and how the answer was chosen; the text is in no clear form."""
    name = here.predict()[0]["id"]
    assert here.send_text(name, label) == "stored"
    (row,) = here.table.texts()
    manifest = here.api.models.default.manifest
    assert (row.model, row.version, row.is_random) == (manifest.name, manifest.version, True)
    assert here.texts() == [(SECRET, label)]
    assert SECRET not in str(here.client.scan(TableName="feedback")["Items"])
    assert SECRET not in "".join(here.log)
    assert SECRET not in name


def test_a_text_is_stored_only_when_it_is_sent(here: Storing, label: str) -> None:
    """A label alone stores no text, and the text may come later."""
    name = here.predict()[0]["id"]
    assert here.send_text(name, label, None) == "stored"
    assert here.texts() == []
    assert here.send_text(name, label) == "stored"
    assert here.texts() == [(SECRET, label)]


def test_a_repeated_label_keeps_the_text(here: Storing, label: str) -> None:
    """The label again without its text changes nothing, and another label is a conflict."""
    name = here.predict()[0]["id"]
    other = here.api.models.default.manifest.labels[1]
    outcomes = [
        here.send_text(name, label),
        here.send_text(name, label),
        here.send_text(name, label, None),
        here.send_text(name, other, None),
        here.send_text(name, other),
    ]
    assert outcomes == ["stored", "stored", "stored", "conflict", "conflict"]
    assert here.texts() == [(SECRET, label)]


def test_no_other_text_can_be_attached(here: Storing, label: str) -> None:
    """An id takes the text of its answer alone, up to white space; lone surrogates are another text."""
    name = here.predict()[0]["id"]
    for text in ("another text", SECRET + ".", "", "\0"):
        assert here.send_text(name, label, text) == "other-text"
    assert here.labels() == []
    assert here.send_text(name, label, f"  {SECRET}\n") == "stored"


def test_an_id_before_texts_takes_none(here: Storing, label: str) -> None:
    """Ids from before the setting have no digest: their labels are stored, and their texts are not."""
    old = here.signed_before_texts()
    assert here.send_text(old, label) == "other-text"
    assert here.send_text(old, label, None) == "stored"
    assert len(here.labels()) == 1


def test_a_large_text_is_refused(here: Storing, label: str) -> None:
    """White space does not count for the digest, and does for the table."""
    name = here.predict()[0]["id"]
    assert here.send_text(name, label, SECRET + " " * MAX_TEXT_BYTES) == "text-too-large"
    assert here.labels() == []


def test_a_delete_removes_label_and_text(here: Storing, label: str) -> None:
    """Nothing of the answer stays in the table, and a repeated delete is as good."""
    name = here.predict()[0]["id"]
    here.send_text(name, label)
    for _ in range(2):
        assert here.answer("DELETE", f"/v1/feedback/{name}", None).status == 200
    assert here.client.scan(TableName="feedback")["Items"] == []


def test_an_expired_text_is_not_read(here: Storing, label: str) -> None:
    """DynamoDB deletes hours late: the reader leaves the text out before."""
    name = here.predict()[0]["id"]
    here.send_text(name, label)
    here.now_s = NOW_S + 90 * DAY_S - 1
    assert len(here.texts()) == 1
    here.now_s += 1
    assert here.texts() == []
    assert len(here.client.scan(TableName="feedback")["Items"]) == 1


def test_an_expired_text_goes_with_its_label(client: Any) -> None:
    """A label without a text that takes an expired item's place leaves nothing of the old text."""
    table = FeedbackTable("feedback", lambda: client, lambda: NOW_S)
    table.add(ANSWER, "sci.med", NOW_S, SealedText(b"sealed", "key"))
    assert table.add(ANSWER, "sci.space", NOW_S + DAY_S)
    assert b"sealed" not in str(client.scan(TableName="feedback")["Items"]).encode()


def test_the_monitor_reads_no_text(here: Storing, label: str) -> None:
    """A query for labels asks DynamoDB for no text."""
    here.send_text(here.predict()[0]["id"], label)
    asked = []
    here.client.meta.events.register(
        "before-parameter-build.dynamodb.Query", lambda params, **_: asked.append(params)
    )
    assert len(here.labels()) == 1
    assert asked
    assert not any("sealed_text" in str(params) for params in asked)


def test_ids_hold_the_digest_only_where_texts_are_stored(client: Any) -> None:
    """Without the setting, an answer's id says nothing of its text."""
    plain, storing = Here(client), Storing(client)
    signer = Signer(KEY)
    digests = [
        answer.text_digest
        for one in (plain, storing)
        if (answer := signer.read(one.predict()[0]["id"], "ann"))
    ]
    assert digests == [b"", signer.digest(SECRET)]
