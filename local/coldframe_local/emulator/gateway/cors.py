"""Cross-origin requests, as API Gateway answers them from its configuration. Pure.

An HTTP API sets the headers itself, on every answer. A REST API, as SAM makes it, answers
preflight requests only; on everything else the headers are the function's own.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-cors.html (read 2026-11).
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from coldframe_local.emulator.gateway.definitions import ANY, Cors
from coldframe_local.emulator.gateway.http import Headers, HttpRequest, HttpResponse

_CORS_PREFIX = b"access-control-"
_ALL_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


def is_preflight(request: HttpRequest) -> bool:
    """Whether a browser asks what it may do."""
    names = {name for name, _ in request.headers}
    return request.method == "OPTIONS" and {b"origin", b"access-control-request-method"} <= names


def http_preflight(cors: Cors, request: HttpRequest) -> HttpResponse:
    """An HTTP API's own answer where no route takes the OPTIONS request."""
    return HttpResponse(HTTPStatus.NO_CONTENT, _http_headers(cors, request), b"")


def with_http_cors(cors: Cors, request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The function's response with the API's CORS headers in place of its own."""
    headers = [(name, value) for name, value in response.headers if not name.startswith(_CORS_PREFIX)]
    return HttpResponse(response.status, headers + _http_headers(cors, request), response.body)


def rest_preflight(cors: Cors, methods: Sequence[str]) -> HttpResponse:
    """The mock integration that SAM adds to each path. methods: methods that the path has routes for."""
    allowed = cors.allow_methods or _rest_methods(methods)
    headers: Headers = [
        (b"access-control-allow-origin", ",".join(cors.allow_origins).encode("latin-1")),
        (b"access-control-allow-methods", ",".join(allowed).encode("latin-1")),
        (b"content-type", b"application/json"),
    ]
    return HttpResponse(HTTPStatus.OK, headers + _preflight_headers(cors), b"")


def _rest_methods(methods: Sequence[str]) -> tuple[str, ...]:
    return _ALL_METHODS if ANY in methods else tuple(sorted({*methods, "OPTIONS"}))


def _http_headers(cors: Cors, request: HttpRequest) -> Headers:
    origin = next((value for name, value in request.headers if name == b"origin"), None)
    if origin is None or not {"*", origin.decode("latin-1")} & set(cors.allow_origins):
        return []
    allowed = b"*" if "*" in cors.allow_origins else origin
    headers: Headers = [(b"access-control-allow-origin", allowed)]
    if cors.expose_headers:
        headers.append((b"access-control-expose-headers", ",".join(cors.expose_headers).encode("latin-1")))
    if not is_preflight(request):
        return headers + _credentials(cors)
    if cors.allow_methods:
        headers.append((b"access-control-allow-methods", ",".join(cors.allow_methods).encode("latin-1")))
    return headers + _preflight_headers(cors)


def _preflight_headers(cors: Cors) -> Headers:
    headers = _credentials(cors)
    if cors.allow_headers:
        headers.append((b"access-control-allow-headers", ",".join(cors.allow_headers).encode("latin-1")))
    if cors.max_age_s is not None:
        headers.append((b"access-control-max-age", str(cors.max_age_s).encode("ascii")))
    return headers


def _credentials(cors: Cors) -> Headers:
    return [(b"access-control-allow-credentials", b"true")] if cors.allow_credentials else []
