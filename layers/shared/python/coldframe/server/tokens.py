"""Authentication: bearer tokens with names, from a setting and from a file that may be replaced at any
time.
"""

import hashlib
import hmac
import ipaddress
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from coldframe.errors import BadSetting, Unauthorized
from coldframe.server.settings import ServerSettings
from coldframe.timing import Clock

CHECK_S = 1.0
"""Seconds between two looks at the file."""
EVERYWHERE, THIS_MACHINE = "0.0.0.0", "127.0.0.1"  # noqa: S104 - only with tokens, or where told so
_MAX_FILE_BYTES = 1_048_576  # as large as a Secret of Kubernetes may be
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# The characters of RFC 6750, section 2.1; 22 of base64 hold 128 bits, too many to guess.
_TOKEN = re.compile(r"(?=.{22,1024}$)[A-Za-z0-9._~+/-]+=*")
_EXPECTED = "Write NAME:TOKEN, where a token has 22 characters or more, as `openssl rand -hex 32` prints."


class Token(NamedTuple):
    """The digest of a secret, and the name of its caller."""

    digest: bytes
    name: str


def read_tokens(text: str, source: str) -> tuple[Token, ...]:
    """Tokens of `NAME:TOKEN` entries, one a line or separated by commas; lines with `#` are comments.

    One name may have several tokens, so that a token can be replaced. Raises BadSetting, which holds no
    token.
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    entries = [entry.strip() for line in lines for entry in line.split(",") if entry.strip()]
    tokens: dict[bytes, Token] = {}
    for number, entry in enumerate(entries, 1):
        token = _read_entry(entry, f"Entry {number} of {source}")
        if tokens.setdefault(token.digest, token).name != token.name:
            raise BadSetting(f"Entry {number} of {source} has the token of another name. Make a new token.")
    return tuple(tokens.values())


def _read_entry(entry: str, place: str) -> Token:
    name, _, secret = (part.strip() for part in entry.partition(":"))
    if not (_NAME.fullmatch(name) and _TOKEN.fullmatch(secret)):
        raise BadSetting(f"{place} is not a name with a token. {_EXPECTED}")
    return Token(hashlib.sha256(secret.encode()).digest(), name)


def _read_file(path: Path) -> tuple[Token, ...]:
    """Raises BadSetting, also for a file without a token."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise BadSetting(
            f"COLDFRAME_TOKENS_FILE={path} cannot be read: {type(exc).__name__}. Name a text file."
        ) from None
    tokens = read_tokens(text, str(path))
    if not tokens:
        raise BadSetting(f"{path} has no token. {_EXPECTED}")
    return tokens


class Tokens:
    """The tokens of one server, used by the event loop's thread alone.

    log: takes the name of an event and its values. clock: seconds, for the next look at the file.
    Raises BadSetting for a setting or a file without a readable token.
    """

    def __init__(
        self, settings: ServerSettings, log: Callable[..., None], clock: Clock = time.monotonic
    ) -> None:
        self._file = Path(settings.tokens_file) if settings.tokens_file else None
        self._log, self._clock = log, clock
        self._of_setting = read_tokens(settings.tokens, "COLDFRAME_TOKENS")
        self._of_file: tuple[Token, ...] = ()
        if self._file is not None:
            self._stamp, self._next_look_s = _stamp(self._file), clock() + CHECK_S
            self._of_file = _read_file(self._file)
        if settings.allow_anyone and self:
            raise BadSetting("COLDFRAME_ALLOW_ANYONE and tokens are both set. Remove one of the two.")

    def __bool__(self) -> bool:
        """Whether a caller needs a token."""
        return bool(self._of_setting or self._of_file)

    def callers(self, host: str) -> str:
        """Description of the callers that a server on `host` admits."""
        if self:
            return "callers with a token"
        return "anyone on this machine" if _is_this_machine(host) else "anyone"

    def principal(self, authorization: str | None) -> str:
        """The caller's name, by the header `Authorization`; empty where no token is needed.

        Raises Unauthorized. Every token is compared, in constant time, whichever is the right one.
        """
        if not self:
            return ""
        self._look_at_file()
        scheme, _, secret = (authorization or "").partition(" ")
        digest = hashlib.sha256(secret.strip().encode()).digest()
        name = ""
        for token in (*self._of_setting, *self._of_file):
            if hmac.compare_digest(token.digest, digest):
                name = token.name
        if name and scheme.lower() == "bearer":
            return name
        if authorization is None:
            raise Unauthorized("The request has no token. Send Authorization: Bearer, and a token.")
        raise Unauthorized(
            "The token is unknown. Send Authorization: Bearer, and a token of this server.",
            'error="invalid_token"',
        )

    def _look_at_file(self) -> None:
        """Reads the file again after a change. If the new file cannot be read, the old tokens remain
        valid.
        """
        if self._file is None or self._clock() < self._next_look_s:
            return
        self._next_look_s = self._clock() + CHECK_S
        stamp = _stamp(self._file)
        if stamp == self._stamp:
            return
        self._stamp, started_s = stamp, self._clock()
        try:
            self._of_file = _read_file(self._file)
        except BadSetting as exc:
            self._log("tokens-kept", detail=str(exc), duration_ms=self._since_ms(started_s))
        else:
            names = sorted({token.name for token in self._of_file})
            self._log("tokens-read", names=names, duration_ms=self._since_ms(started_s))

    def _since_ms(self, started_s: float) -> float:
        return round((self._clock() - started_s) * 1e3, 1)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Identity of the file behind a path; Kubernetes replaces the folder behind a symbolic link."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def choose_host(settings: ServerSettings, tokens: Tokens) -> str:
    """The address to listen on; by default this machine's own, if neither tokens nor settings admit callers.

    Raises BadSetting for another address without tokens, unless the settings allow anyone.
    """
    if tokens or settings.allow_anyone:
        return settings.host or EVERYWHERE
    host = settings.host or THIS_MACHINE
    if not _is_this_machine(host):
        raise BadSetting(
            f"COLDFRAME_HOST or --host is {host}: other machines can call, and no tokens are set. Set"
            " COLDFRAME_TOKENS_FILE or COLDFRAME_TOKENS; or, to answer anyone, COLDFRAME_ALLOW_ANYONE=true."
        )
    return host


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
