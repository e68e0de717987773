"""A FastAPI application: the contract's documentation, and one endpoint for every other path."""

from collections.abc import Awaitable, Callable
from functools import cache, partial

from fastapi import FastAPI, Request, Response
from fastapi_offline import FastAPIOffline
from starlette.routing import request_response

import coldframe
from coldframe.api.api import Api
from coldframe.api.openapi import openapi

Endpoint = Callable[[Request], Awaitable[Response]]

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


def documented(api: Api, answer: Endpoint) -> FastAPI:
    """An application whose every route but its documentation is `answer`."""
    app: FastAPI = FastAPIOffline(title="Coldframe", version=coldframe.__version__, redoc_url=None)
    app.add_route("/{path:path}", answer, methods=_METHODS, include_in_schema=False)
    app.router.default = request_response(answer)  # a path with a line break matches no route
    app.openapi = cache(partial(openapi, api.models, api.settings))  # type: ignore[method-assign]
    return app
