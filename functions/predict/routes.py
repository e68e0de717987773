"""The FastAPI face of `api.answer`: the same routes, and their documentation."""

from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

import coldframe
from coldframe import api, schemas
from coldframe.errors import REQUEST_ERRORS, RequestError

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
_REF = "#/components/schemas/{name}"

_OPERATIONS: dict[tuple[str, str], tuple[str, type | None, type]] = {
    ("POST", "/v1/predict"): ("Classify texts", schemas.PredictRequest, schemas.PredictReply),
    ("GET", "/v1/models"): ("The model, its heads and their accuracy", None, schemas.ModelList),
    ("GET", "/healthz"): ("Whether the model is loaded", None, schemas.Health),
}
"""What OpenAPI says of each route: summary, request, reply."""


def create_app(engine: api.Api) -> FastAPI:
    """An application whose every route but its documentation is `engine.answer`."""
    app = FastAPI(title="Coldframe", version=coldframe.__version__, redoc_url=None)

    async def answer(request: Request) -> Response:
        asked = api.Request(
            method=request.method,
            path=request.url.path,
            headers={name.lower(): value for name, value in request.headers.items()},
            body=await request.body(),
            request_id=_request_id(request),
        )
        reply = await run_in_threadpool(engine.answer, asked)
        return Response(reply.body, reply.status, reply.headers)

    app.add_route("/{path:path}", answer, methods=_METHODS, include_in_schema=False)
    app.openapi = openapi  # type: ignore[method-assign]
    return app


def openapi() -> dict[str, Any]:
    """The OpenAPI document, generated from the message types of the contract."""
    types = [kind for _, *kinds in _OPERATIONS.values() for kind in kinds if kind] + [schemas.Problem]
    _, components = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, Any] = {}
    for (method, path), (summary, request, reply) in _OPERATIONS.items():
        paths.setdefault(path, {})[method.lower()] = _operation(summary, request, reply)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Coldframe", "version": coldframe.__version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(summary: str, request: type | None, reply: type) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": _content("The answer", reply, "application/json")},
    }
    if request is not None:
        operation["requestBody"] = {"required": True, **_content("", request, "application/json")}
        for error in REQUEST_ERRORS:
            operation["responses"][str(int(error.status))] = _problem(error)
    return operation


def _problem(error: type[RequestError]) -> dict[str, Any]:
    return _content(error.__doc__ or error.title, schemas.Problem, "application/problem+json")


def _content(description: str, kind: type, media_type: str) -> dict[str, Any]:
    content = {media_type: {"schema": {"$ref": _REF.format(name=kind.__name__)}}}
    return {"description": description, "content": content} if description else {"content": content}


def _request_id(request: Request) -> str:
    context = request.scope.get("aws.context")
    return str(getattr(context, "aws_request_id", ""))
