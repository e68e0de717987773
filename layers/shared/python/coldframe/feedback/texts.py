"""Texts of feedback: sealed to a public key. A deployment that stores texts cannot read them.

Source: HPKE, RFC 9180, as the library `cryptography` implements it; imported only to seal and to open.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec import Struct

from coldframe.errors import BadSetting, ColdframeError
from coldframe.feedback.ids import Answer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.hpke import Suite

MAX_TEXT_BYTES = 262_144
"""Largest text in UTF-8: an item in DynamoDB holds 400 KB."""
_PUBLIC, _SECRET = "coldframe-public-", "coldframe-secret-"
_KEY_BYTES = 32
_PURPOSE = b"text of coldframe's feedback"
_ADVICE = "Create both keys with `coldframe feedback keys`."


class UnreadableText(ColdframeError):
    """No key opens the text, or the text belongs to another answer."""


class BadKey(ColdframeError):
    """A file of keys that cannot be used. The message shows no key."""


class SealedText(Struct, frozen=True):
    """An encrypted text. key: name of its public key."""

    content: bytes
    key: str


class TextSealer:
    """Encrypts texts with a public key. Safe for threads."""

    def __init__(self, public: str) -> None:
        """public: the setting `COLDFRAME_FEEDBACK_TEXT_KEY`. Raises BadSetting, which shows no key."""
        try:
            self._public = _decode(public, _PUBLIC)
        except ValueError as exc:
            raise BadSetting(f"COLDFRAME_FEEDBACK_TEXT_KEY is not a public key. {_ADVICE}") from exc
        if find_spec("cryptography") is None:
            raise BadSetting(
                "COLDFRAME_FEEDBACK_TEXT_KEY needs the package cryptography, which is not installed."
                " Install coldframe[feedback]."
            )
        self._name = _name(self._public)

    def seal(self, text: str, answer: Answer) -> SealedText:
        """The text, which opens only together with its answer."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        key = X25519PublicKey.from_public_bytes(self._public)
        return SealedText(_suite().encrypt(text.encode(), key, _purpose(answer.nonce)), self._name)


class TextOpener:
    """Decrypts texts with secret keys."""

    def __init__(self, secrets: Sequence[str]) -> None:
        """secrets: keys that start with `coldframe-secret-`, at least one. Raises BadKey."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        if not secrets:
            raise BadKey(f"There is no secret key. {_ADVICE}")
        try:
            keys = [X25519PrivateKey.from_private_bytes(_decode(secret, _SECRET)) for secret in secrets]
        except ValueError as exc:
            raise BadKey(f"A key is not a secret key. {_ADVICE}") from exc
        self._keys: Mapping[str, X25519PrivateKey] = {
            _name(key.public_key().public_bytes_raw()): key for key in keys
        }

    def open(self, sealed: SealedText, nonce: bytes) -> str:
        """The text of the answer with this nonce. Raises UnreadableText."""
        from cryptography.exceptions import InvalidTag

        key = self._keys.get(sealed.key)
        if key is None:
            raise UnreadableText("The text was encrypted for another key. Add its secret key to the file.")
        try:
            return _suite().decrypt(sealed.content, key, _purpose(nonce)).decode()
        except (InvalidTag, ValueError) as exc:
            raise UnreadableText("The text was changed after it was encrypted. Remove its label.") from exc


def new_keys() -> tuple[str, str]:
    """A public key for the deployment, and its secret key for those who train."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    secret = X25519PrivateKey.generate()
    return (
        _PUBLIC + _encode(secret.public_key().public_bytes_raw()),
        _SECRET + _encode(secret.private_bytes_raw()),
    )


def _suite() -> "Suite":
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


def _purpose(nonce: bytes) -> bytes:
    return _PURPOSE + nonce


def _name(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()[:16]


def _encode(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).rstrip(b"=").decode()


def _decode(key: str, kind: str) -> bytes:
    """The bytes of a key. Raises ValueError, also for a key of the other kind."""
    if not key.startswith(kind):
        raise ValueError("the key is of another kind")
    body = key.removeprefix(kind)
    try:
        content = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
    except binascii.Error as exc:
        raise ValueError("the key is not base64") from exc
    if len(content) != _KEY_BYTES:
        raise ValueError("the key has another length")
    return content
