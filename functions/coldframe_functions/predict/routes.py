"""FastAPI routes over `api.answer` for Lambda's events: the same routes, and their documentation."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

from coldframe.api import api
from coldframe.api.access import GATEWAY
from coldframe.api.documented import documented
from coldframe.api.gateway_event import principal_of

_WHERE = frozenset({"host", "x-forwarded-port"})
_NO_LIMIT = partial(float, "inf")


def create_app(engine: api.Api, clock_of: Callable[[Any], Callable[[], float]]) -> FastAPI:
    """An application that answers documentation itself and hands every other route to `engine.answer`.

    clock_of: returns a function for the seconds that an invocation has left, by its context.
    """

    async def answer(request: Request) -> Response:
        context = request.scope.get("aws.context")
        request_in = api.Request(
            method=request.method,
            path=request.scope["path"],
            headers={name.lower(): value for name, value in request.headers.items()},
            body=await request.body(),
            request_id=str(getattr(context, "aws_request_id", "")),
            time_left_s=clock_of(context) if context is not None else _NO_LIMIT,
            principal=principal_of(request.scope.get("aws.event", {})),
        )
        reply = await run_in_threadpool(engine.answer, request_in)
        return Response(reply.body, reply.status, reply.headers)

    return documented(engine, answer, GATEWAY)


def without_host(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event without headers about its address, since no route depends on them.

    Mangum raises for `[::1]:3000` and for a port that is not a number (mangum 0.22, `get_server_and_port`).
    """
    parts = {
        name: {key: value for key, value in event[name].items() if key.lower() not in _WHERE}
        for name in ("headers", "multiValueHeaders")
        if event.get(name)
    }
    return {**event, **parts}
