"""Ids of answers: signed tokens, so that predicting stores nothing."""

import base64
import binascii
import hashlib
import hmac
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from coldframe.errors import BadSetting

_MAC_BYTES = 16
_LEAST_KEY_CHARACTERS = 16
_LONGEST_ID = 2048
_OF_TEXTS = b"digests of texts"


class Trial(Struct, frozen=True, array_like=True):
    """The experiment that an answer was part of.

    run, lineup: whose counts its label changes. label: None where the arm abstained. is_compared: whether a
    shadow answered, too; other: its label. share: a bandit's arm had this share when it answered; 0: there is
    no bandit.
    """

    run: str
    lineup: str
    arm: str
    label: str | None
    is_compared: bool
    other: str | None
    share: Annotated[float, Meta(ge=0, le=1)] = 0.0


class Answer(Struct, frozen=True, array_like=True):
    """One head's answer for one text, as its id holds it.

    model: version of the model. label: its best label. moment_s: when it was given, since 1970.
    is_drawn: whether chance chose it to be labelled. nonce: random bytes, which no other answer has.
    name: of the model. text_digest: the keyed digest of its text; empty unless texts are stored. Ids without
    these two are older, and can be read.
    trial: None for an answer outside of experiments.
    """

    model: str
    head: str
    label: str
    probability: Annotated[float, Meta(ge=0, le=1)]
    moment_s: Annotated[int, Meta(ge=0)]
    is_drawn: bool
    nonce: Annotated[bytes, Meta(min_length=16, max_length=16)]
    name: str = ""
    text_digest: Annotated[bytes, Meta(max_length=16)] = b""
    trial: Trial | None = None


_DECODER = msgspec.msgpack.Decoder(Answer)


class Signer:
    """Writes and reads ids. Safe for threads."""

    def __init__(self, key: str) -> None:
        """Raises BadSetting for a short key; the message does not show it."""
        if len(key) < _LEAST_KEY_CHARACTERS:
            raise BadSetting(
                f"COLDFRAME_FEEDBACK_KEY has {len(key)} characters, expected at least"
                f" {_LEAST_KEY_CHARACTERS}. Set a random key."
            )
        self._key = key.encode()
        self._text_key = hmac.digest(self._key, _OF_TEXTS, hashlib.sha256)

    def id_of(self, answer: Answer, owner: str) -> str:
        """The id of an answer to `owner`, in characters that a path may hold."""
        content = msgspec.msgpack.encode(answer)
        return _encoded(content + self._mac(content, owner))

    def read(self, name: str, owner: str) -> Answer | None:
        """The answer of an id. None unless this key signed the id for this owner."""
        if len(name) > _LONGEST_ID:
            return None
        try:
            signed = base64.b64decode(name + "=" * (-len(name) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        content, mac = signed[:-_MAC_BYTES], signed[-_MAC_BYTES:]
        if _encoded(signed) != name or not hmac.compare_digest(mac, self._mac(content, owner)):
            return None
        return _DECODER.decode(content)

    def digest(self, text: str) -> bytes:
        """Keyed digest of a text in normal form: nobody without the key can test a guess of the text."""
        return hmac.digest(self._text_key, text.encode(), hashlib.sha256)[:_MAC_BYTES]

    def _mac(self, content: bytes, owner: str) -> bytes:
        signed = len(content).to_bytes(4, "big") + content + owner.encode()
        return hmac.digest(self._key, signed, hashlib.sha256)[:_MAC_BYTES]


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
