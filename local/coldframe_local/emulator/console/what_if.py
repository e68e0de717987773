"""`/_what-if`: what a function would do with another setting, simulated on traffic of the user's choice.

GET tells which traffic there is to choose; POST simulates a setting beside the present one.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from coldframe.capacity import limits
from coldframe.errors import ColdframeError
from coldframe_local.emulator.gateway.http import NOT_JSON, HttpRequest, HttpResponse, problem

if TYPE_CHECKING:
    from coldframe_local.emulator.lambda_service.account.service import LambdaService
    from coldframe_local.emulator.options import EmulatorOptions

PATH = "/_what-if"

_MOST_LEVEL = 1000
_JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setting of a function. trace: a name that GET returns. lever: of `planner.what_if`."""

    function: str
    trace: str
    lever: str
    level: Annotated[int, Meta(ge=0, le=_MOST_LEVEL)]
    memory_mb: Annotated[int, Meta(ge=limits.MIN_MEMORY.value, le=limits.MEMORY.value)]


class WhatIfHandler:
    """Handler of requests for `PATH`. One simulation at a time, beside the event loop."""

    max_body_bytes = 4096

    def __init__(self, service: LambdaService, options: EmulatorOptions) -> None:
        self._service = service
        self._options = options
        self._one_at_a_time = asyncio.Lock()

    def too_large(self) -> HttpResponse:
        """The answer to a body that was not read to its end."""
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"Expected at most {self.max_body_bytes} bytes.")

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The choices, or the outcome of one."""
        if request.method not in ("GET", "POST"):
            return problem(HTTPStatus.METHOD_NOT_ALLOWED, "Ask with GET or POST.", (b"allow", b"GET, POST"))
        from coldframe_local.emulator.console.simulations import (
            Simulations,  # only who asks waits for the import
        )

        simulations = Simulations(self._service, self._options)
        if request.method == "GET":
            return _answer({"traces": simulations.traces(), "levers": simulations.levers()})
        try:
            question = msgspec.json.decode(request.body, type=Asked)
            simulate = simulations.prepared(
                question.function, question.trace, question.lever, question.level, question.memory_mb
            )
            async with self._one_at_a_time:
                return _answer(await asyncio.to_thread(simulate))
        except (*NOT_JSON, ColdframeError) as exc:
            return problem(HTTPStatus.BAD_REQUEST, f"Cannot simulate this: {exc}")


def _answer(body: Any) -> HttpResponse:
    return HttpResponse(HTTPStatus.OK, list(_JSON), msgspec.json.encode(body))
