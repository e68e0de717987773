"""The parts of a function's result, checked before they go on the wire. Pure.

What is wrong with a result is said without its words: what functions answer stays out of the log.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from coldframe_local.emulator.gateway.http import Headers

# The emulator sets these itself, or they belong to one connection only.
_OF_THE_CONNECTION = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"})

# A token: https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# A field value has no control character but the tab: section 5.5 there.
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_THREE_DIGITS = re.compile(r"[0-9]{3}")
# Lower ones announce that a final status follows.
_LOWEST_STATUS, _HIGHEST_STATUS = HTTPStatus.OK, 599


class MalformedResponse(Exception):
    """A function's result that API Gateway cannot turn into an HTTP response."""


def status_of(value: Any) -> int:
    """The status of a result; API Gateway also takes the number as a string."""
    if isinstance(value, str) and _THREE_DIGITS.fullmatch(value):
        value = int(value)
    if type(value) is not int or not _LOWEST_STATUS <= value <= _HIGHEST_STATUS:
        raise MalformedResponse("`statusCode` is not a number from 200 to 599")
    return value


def header_lines(values: Iterable[tuple[str, Any]], default_type: bytes) -> Headers:
    """Headers for the wire, names in lower case. default_type: where the function gives no content type.

    What belongs to the connection is left out: how long an answer is, the emulator knows itself.
    Raises MalformedResponse for a name or a value that HTTP does not allow.
    """
    lines = [
        (_name(name), header_value(value)) for name, value in values if name.lower() not in _OF_THE_CONNECTION
    ]
    if all(name != b"content-type" for name, _ in lines):
        lines.append((b"content-type", default_type))
    return lines


def _name(name: str) -> bytes:
    if not _NAME.fullmatch(name):
        raise MalformedResponse("the name of a header is empty or has characters that HTTP does not allow")
    return name.lower().encode("ascii")


def header_value(value: Any) -> bytes:
    """A header's value; numbers and booleans as JSON writes them."""
    if value is None or isinstance(value, (list, dict)):
        raise MalformedResponse("the value of a header is not a string, a number or a boolean")
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if _CONTROL.search(text):
        raise MalformedResponse("the value of a header contains a line break or another control character")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as exc:
        raise MalformedResponse("the value of a header contains characters outside Latin-1") from exc


def body_of(result: Mapping[str, Any]) -> bytes:
    """The body of a result, decoded when it says that it is base64."""
    body = result.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise MalformedResponse("`body` is not a string")
    if not result.get("isBase64Encoded"):
        return body.encode()
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise MalformedResponse("`body` is not base64, as `isBase64Encoded` says") from exc
