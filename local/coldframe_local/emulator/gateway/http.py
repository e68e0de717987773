"""An HTTP request as it came in, and a response as it goes out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import msgspec

Headers = list[tuple[bytes, bytes]]

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of msgspec for bytes that are not JSON, not UTF-8, or nested too deep."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it came in: header names in lower case, path and query still percent-encoded."""

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    source_ip: str
    protocol: str = "HTTP/1.1"

    @property
    def line(self) -> str:
        """The first line of the request, without its line break."""
        target = f"{self.path}?{self.query}" if self.query else self.path
        return f"{self.method} {target} {self.protocol}"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response without the headers that belong to the connection."""

    status: int
    headers: Headers
    body: bytes


class Handler(Protocol):
    """Handler of the requests for some paths."""

    @property
    def max_body_bytes(self) -> int:
        """More is not read."""

    def too_large(self) -> HttpResponse:
        """The answer to a larger body."""

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request."""


def header(headers: Headers, name: bytes) -> str:
    """The value of a header, the first one of several; "" when there is none. name: in lower case."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def problem(
    status: HTTPStatus,
    detail: str,
    *headers: tuple[bytes, bytes],
    aws: Mapping[str, str] | None = None,
) -> HttpResponse:
    """One of the emulator's own answers, of type `application/problem+json` (RFC 9457).

    aws: members of the answer that AWS would give, beside those of the problem.
    """
    members = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    content_type = (b"content-type", b"application/problem+json")
    return HttpResponse(status, [content_type, *headers], msgspec.json.encode({**(aws or {}), **members}))
