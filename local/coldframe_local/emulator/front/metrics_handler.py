"""`GET /_metrics`: metrics for Prometheus. The path is the emulator's own: no function sees it."""

from __future__ import annotations

from http import HTTPStatus

from coldframe_local.emulator.gateway.http import HttpRequest, HttpResponse, problem
from coldframe_local.emulator.lambda_service.account.service import LambdaService

PATH = "/_metrics"

_TOO_LARGE = problem(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{PATH} takes no body. Ask with GET and without one."
)
_WRONG_METHOD = problem(
    HTTPStatus.METHOD_NOT_ALLOWED, f"{PATH} can only be read. Ask with GET.", (b"allow", b"GET, HEAD")
)


class MetricsHandler:
    """Handler of requests for `PATH`."""

    max_body_bytes = 0

    def __init__(self, service: LambdaService) -> None:
        self._service = service

    def too_large(self) -> HttpResponse:
        """The answer to any body."""
        return _TOO_LARGE

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """All metrics at this moment."""
        if request.method not in ("GET", "HEAD"):
            return _WRONG_METHOD
        content_type, body = self._service.render_metrics()
        return HttpResponse(HTTPStatus.OK, [(b"content-type", content_type.encode("ascii"))], body)
