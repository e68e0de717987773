"""A FastAPI application: the contract's documentation, and one endpoint for every other path."""

from collections.abc import Awaitable, Callable
from functools import cache, partial

from fastapi import FastAPI, Request, Response
from fastapi_offline import FastAPIOffline
from starlette.routing import request_response

import coldframe
from coldframe.api.access import Access
from coldframe.api.api import Api
from coldframe.api.openapi import openapi

Endpoint = Callable[[Request], Awaitable[Response]]


def documented(api: Api, answer: Endpoint, access: Access) -> FastAPI:
    """An application that answers documentation itself and hands every other route to `answer`.

    access: access control in front of the application.
    """
    app: FastAPI = FastAPIOffline(title="Coldframe", version=coldframe.__version__, redoc_url=None)
    app.mount("/", request_response(answer))  # a FastAPI route would answer TRACE by itself
    app.router.default = request_response(answer)  # a path with a line break matches no route
    app.openapi = cache(partial(openapi, api.models, api.settings, access))  # type: ignore[method-assign]
    return app
