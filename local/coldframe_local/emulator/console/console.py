"""The console: the page at `/_console`, and the burst of requests that it can ask for."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import msgspec

from coldframe_local.emulator.console.burst import Burst, send_burst
from coldframe_local.emulator.gateway.http import NOT_JSON, HttpRequest, HttpResponse, header, problem

PATH = "/_console"

_FOLDER = Path(__file__).resolve().parent / "page"
_BURST = f"{PATH}/burst"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing from elsewhere, nothing inline, nothing that turns text into markup.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode("ascii")),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
]
_NOT_FOUND = problem(
    HTTPStatus.NOT_FOUND, f"There is no such file. The console is at {PATH}, its events at /_events."
)


class Console:
    """Serves the page. address: host and port of the emulator, known once it listens."""

    max_body_bytes = 1 << 20

    def __init__(self, address: Callable[[], tuple[str, int]]) -> None:
        self._address = address

    def too_large(self) -> HttpResponse:
        """The answer to a body that was not read to its end."""
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"Expected at most {self.max_body_bytes} bytes.")

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """A file of the page, or the report of a burst."""
        if request.path == _BURST:
            return await self._burst(request) if request.method == "POST" else _wrong_method("POST")
        if request.method not in ("GET", "HEAD"):
            return _wrong_method("GET, HEAD")
        return _file(request.path)

    async def _burst(self, request: HttpRequest) -> HttpResponse:
        try:
            burst = msgspec.json.decode(request.body, type=Burst)
        except NOT_JSON as exc:
            return problem(HTTPStatus.BAD_REQUEST, f"Cannot send this: {exc}.")
        report = await send_burst(burst, *self._address())
        content_type = (b"content-type", b"application/json")
        return HttpResponse(HTTPStatus.OK, [content_type, *_HEADERS], msgspec.json.encode(report))


def lead_browser(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The way to the console for whoever opens the printed address, unless a function has a page there."""
    wants_page = "text/html" in header(request.headers, b"accept")
    is_lost = (request.method, request.path, response.status) == ("GET", "/", HTTPStatus.NOT_FOUND)
    if not (is_lost and wants_page):
        return response
    return HttpResponse(HTTPStatus.FOUND, [(b"location", PATH.encode("ascii"))], b"")


def is_console(path: str) -> bool:
    """Whether a path is the console's."""
    return path == PATH or path.startswith(f"{PATH}/")


def _file(path: str) -> HttpResponse:
    """A file of the page, read for each request: an edited page shows after a reload."""
    name = path.removeprefix(PATH).strip("/") or "index.html"
    file = _FOLDER / name
    if "/" in name or file.suffix not in _TYPES or not file.is_file():
        return _NOT_FOUND
    content_type = (b"content-type", _TYPES[file.suffix].encode("ascii"))
    return HttpResponse(HTTPStatus.OK, [content_type, *_HEADERS], file.read_bytes())


def _wrong_method(allowed: str) -> HttpResponse:
    return problem(HTTPStatus.METHOD_NOT_ALLOWED, f"Ask with {allowed}.", (b"allow", allowed.encode("ascii")))
