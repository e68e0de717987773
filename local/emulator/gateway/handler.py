"""Interface of the emulator's parts that answer HTTP requests."""

from __future__ import annotations

from typing import Protocol

from local.emulator.gateway.http import HttpRequest, HttpResponse


class Door(Protocol):
    """Handler of the requests for some paths."""

    @property
    def max_body_bytes(self) -> int:
        """More is not read."""

    def too_large(self) -> HttpResponse:
        """The answer to a larger body."""

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request."""
