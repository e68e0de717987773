"""The FastAPI face of `api.answer`: the same routes, and their documentation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from inspect import cleandoc
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi_offline import FastAPIOffline
from starlette.concurrency import run_in_threadpool
from starlette.routing import request_response

import coldframe
from coldframe.api import api, messages, schemas
from coldframe.api import inference_schemas as inference
from coldframe.api.contract import JSON
from coldframe.errors import REQUEST_ERRORS, MethodNotAllowed, NotFound, RequestError
from functions.predict.engine import clock_of

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
_WHERE = frozenset({"host", "x-forwarded-port"})
_NO_LIMIT = partial(float, "inf")
_REF = "#/components/schemas/{name}"


@dataclass(frozen=True)
class _Operation:
    """What OpenAPI says of a route. tensors: JSON may be followed by binary tensors, both ways."""

    summary: str
    reply: type
    request: type | None = None
    tensors: bool = False


_MODEL = _Operation("A model's inputs and outputs", inference.ModelMetadata)
_MODEL_READY = _Operation("Whether a model is loaded", inference.ModelReady)
_INFER = _Operation("Run a model on tensors", inference.InferReply, inference.InferRequest, tensors=True)

_OPERATIONS: dict[tuple[str, str], _Operation] = {
    ("POST", "/v1/predict"): _Operation("Classify texts", schemas.PredictReply, schemas.PredictRequest),
    ("POST", "/v1/embeddings"): _Operation(
        "Embed texts, as OpenAI's API", schemas.EmbeddingsReply, schemas.EmbeddingsRequest
    ),
    ("GET", "/v1/models"): _Operation("The classifier, its encoder and its heads", schemas.ModelList),
    ("GET", "/v1/models/{model}"): _Operation("One of them", schemas.ModelCard),
    ("GET", "/v2"): _Operation("The server, by the Open Inference Protocol", inference.ServerMetadata),
    ("GET", "/v2/health/live"): _Operation("Whether the server is up", inference.ServerLive),
    ("GET", "/v2/health/ready"): _Operation("Whether every model is loaded", inference.ServerReady),
    ("GET", "/v2/models/{model}"): _MODEL,
    ("GET", "/v2/models/{model}/ready"): _MODEL_READY,
    ("POST", "/v2/models/{model}/infer"): _INFER,
    ("GET", "/v2/models/{model}/versions/{version}"): _MODEL,
    ("GET", "/v2/models/{model}/versions/{version}/ready"): _MODEL_READY,
    ("POST", "/v2/models/{model}/versions/{version}/infer"): _INFER,
    ("GET", "/healthz"): _Operation("Whether the model is loaded", schemas.Health),
}

_HEADER_LENGTH = {
    "name": "Inference-Header-Content-Length",
    "in": "header",
    "required": False,
    "description": "Bytes of the JSON part, when binary tensors follow it.",
    "schema": {"type": "integer", "minimum": 1},
}


def create_app(engine: api.Api) -> FastAPI:
    """An application whose every route but its documentation is `engine.answer`."""
    app: FastAPI = FastAPIOffline(title="Coldframe", version=coldframe.__version__, redoc_url=None)

    async def answer(request: Request) -> Response:
        context = request.scope.get("aws.context")
        asked = api.Request(
            method=request.method,
            path=request.scope["path"],
            headers={name.lower(): value for name, value in request.headers.items()},
            body=await request.body(),
            request_id=str(getattr(context, "aws_request_id", "")),
            time_left_s=clock_of(context) if context is not None else _NO_LIMIT,
        )
        reply = await run_in_threadpool(engine.answer, asked)
        return Response(reply.body, reply.status, reply.headers)

    app.add_route("/{path:path}", answer, methods=_METHODS, include_in_schema=False)
    app.router.default = request_response(answer)  # a path with a line break matches no route
    app.openapi = openapi  # type: ignore[method-assign]
    return app


def without_host(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event without the headers that say where it was sent: no route depends on them.

    Mangum raises for `[::1]:3000` and for a port that is no number (mangum 0.22, `get_server_and_port`).
    """
    kept = {
        name: {key: value for key, value in event[name].items() if key.lower() not in _WHERE}
        for name in ("headers", "multiValueHeaders")
        if event.get(name)
    }
    return {**event, **kept}


def openapi() -> dict[str, Any]:
    """The OpenAPI document, generated from the message types of the contract."""
    types = {kind for operation in _OPERATIONS.values() for kind in (operation.request, operation.reply)}
    named = sorted(filter(None, types | {schemas.Problem}), key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(named, ref_template=_REF)
    for component in components.values():
        # Of a docstring, with the indentation that it has in the source before Python 3.13.
        component["description"] = cleandoc(component["description"])
    paths: dict[str, Any] = {}
    for (method, path), operation in _OPERATIONS.items():
        paths.setdefault(path, {})[method.lower()] = _describe(operation, path)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Coldframe", "version": coldframe.__version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _describe(operation: _Operation, path: str) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", path)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
    ]
    described: dict[str, Any] = {
        "summary": operation.summary,
        "responses": {"200": _content("The answer", operation.reply, operation.tensors)},
    }
    if operation.request is not None:
        content = _content("", operation.request, operation.tensors)
        described["requestBody"] = {"required": True, **content}
    if operation.tensors:
        parameters.append(_HEADER_LENGTH)
    if parameters:
        described["parameters"] = parameters
    for error in REQUEST_ERRORS if operation.request else (NotFound, MethodNotAllowed):
        _add_problem(described["responses"], error)
    return described


def _add_problem(responses: dict[str, Any], error: type[RequestError]) -> None:
    """Two errors of one status share an entry."""
    response = responses.setdefault(
        str(int(error.status)), _content("", schemas.Problem, media_type="application/problem+json")
    )
    said = [response["description"]] if "description" in response else []
    response["description"] = " ".join([*said, error.__doc__ or error.title])


def _content(description: str, kind: type, tensors: bool = False, media_type: str = JSON) -> dict[str, Any]:
    content: dict[str, Any] = {media_type: {"schema": {"$ref": _REF.format(name=kind.__name__)}}}
    if tensors:
        content[messages.BINARY] = {"schema": {"type": "string", "format": "binary"}}
    return {"description": description, "content": content} if description else {"content": content}
