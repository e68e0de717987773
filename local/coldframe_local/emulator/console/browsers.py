"""Keeps other web pages away from the console, its events and the Lambda API.

A page from anywhere, open in the developer's browser, can send requests to 127.0.0.1, and one whose host
name is made to resolve to it (DNS rebinding) can read the answers. Programs send no `Origin` and are let in.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from coldframe_local.emulator.gateway.http import Handler, Headers, HttpRequest, HttpResponse, header, problem


class OwnPagesOnly:
    """A handler that other web pages cannot use. names, always: as `refusal` takes them."""

    def __init__(self, handler: Handler, names: Collection[str], *, always: bool = False) -> None:
        self._handler = handler
        self._names = names
        self._always = always

    @property
    def max_body_bytes(self) -> int:
        return self._handler.max_body_bytes

    def too_large(self) -> HttpResponse:
        return self._handler.too_large()

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The handler's answer, or 403."""
        refused = refusal(request.headers, self._names, always=self._always)
        return refused or await self._handler.respond(request)


def refusal(headers: Headers, names: Collection[str], *, always: bool = False) -> HttpResponse | None:
    """The answer to a request of another web page; None for all others.

    names: by which this machine is known, besides `localhost` and addresses.
    always: the host name of requests without an `Origin` is checked too, since browsers send none with a
    page's own reads, and DNS rebinding makes another page look like an own one.
    """
    host, origin = header(headers, b"host"), header(headers, b"origin")
    if not origin and not always:
        return None
    if not _is_own_name(host, names):
        problem = f"The host is {host!r}, which is not known to be this machine."
        return _forbidden(f"{problem} Open it by address, as localhost, or by the name given to --host.")
    if origin and not _is_page_of(origin, host):
        return _forbidden(f"The request comes from {origin!r}, expected http://{host}: its own page.")
    return None


def own_names(listening_on: str) -> frozenset[str]:
    """Names by which this machine is known."""
    return frozenset({listening_on.lower(), socket.gethostname().lower()})


def _is_page_of(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False


def _is_own_name(host: str, names: Collection[str]) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost") or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _forbidden(detail: str) -> HttpResponse:
    return problem(HTTPStatus.FORBIDDEN, detail)
