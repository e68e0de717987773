"""The predict function: AWS events in, AWS responses out.

Importing this module is the init phase. It loads the model; what goes wrong
ends the environment loudly, as a failed init.
"""

import base64
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

from coldframe.api import Api, Reply, Request
from coldframe.config import load_settings
from coldframe.predictor import load_predictor
from coldframe.timing import StartMark

Event = Mapping[str, Any]
Response = dict[str, Any]


class Context(Protocol):
    """What we use of Lambda's context object."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int: ...


def _load() -> Api:
    settings = load_settings(os.environ)
    predictor = load_predictor(settings)
    if _INITIALIZATION_TYPE != "on-demand":
        predictor.cache.set_up()  # nobody waits for this init phase: boto3 is imported here
    return Api(predictor, settings, StartMark(_INITIALIZATION_TYPE))


_INITIALIZATION_TYPE = os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
_api = _load()


def handler(event: Event, context: Context) -> Response:
    """Answers an API Gateway event: HTTP API (payload 2.0) or REST API (1.0).

    Hot routes are answered here; anything else goes through FastAPI, which is
    imported when it is first needed.
    """
    request = replace(read_event(event, context.aws_request_id), time_left_s=_clock_of(context))
    if _api.answers(request.method, request.path):
        return write_response(_api.answer(request))
    return _fastapi()(event, context)


def _clock_of(context: Context) -> Callable[[], float]:
    """Seconds until Lambda stops this invocation, whenever asked."""
    return lambda: context.get_remaining_time_in_millis() / 1e3


def read_event(event: Event, request_id: str) -> Request:
    """The request inside an API Gateway event.

    Raises ValueError for an event of another source.
    """
    context = event.get("requestContext", {})
    if event.get("version") == "2.0" and "http" in context:
        method, path = context["http"]["method"], _without_stage(event["rawPath"], context.get("stage"))
    elif "httpMethod" in event and "path" in event:
        method, path = event["httpMethod"], event["path"]
    else:
        raise ValueError(
            "This event is no API Gateway event: expected payload 2.0 (HTTP API) or 1.0 (REST API)."
            " Call the function through its API, or send an event in that form."
        )
    if "%" in path:
        from urllib.parse import unquote

        path = unquote(path)
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    return Request(method, path, headers, _body(event), request_id)


def write_response(reply: Reply) -> Response:
    """A reply in the form that both kinds of API Gateway read.

    A REST API decodes base64 only for the types in its `BinaryMediaTypes`; an HTTP API always does.
    """
    return {
        "statusCode": reply.status,
        "headers": reply.headers,
        "body": base64.b64encode(reply.body).decode() if reply.is_binary else reply.body.decode(),
        "isBase64Encoded": reply.is_binary,
    }


def _body(event: Event) -> bytes:
    body: str = event.get("body") or ""
    return base64.b64decode(body) if event.get("isBase64Encoded") else body.encode(errors="surrogatepass")


def _without_stage(path: str, stage: str | None) -> str:
    """An HTTP API puts its stage before the path, unless it is the default one."""
    return path.removeprefix(f"/{stage}") if stage and stage != "$default" else path


@cache
def _fastapi() -> Callable[[Event, Context], Response]:
    from mangum import Mangum

    from functions.predict.routes import create_app

    # Mangum would enter the lifespan on every call; everything is loaded already.
    # What is not named as text would leave as base64.
    text = ["text/", "application/json", "application/problem+json"]
    return Mangum(create_app(_api), lifespan="off", text_mime_types=text)  # type: ignore[return-value]


if _INITIALIZATION_TYPE != "on-demand":
    from functions.predict.priming import prime

    prime(handler)
if _INITIALIZATION_TYPE == "snap-start":
    from functions.predict.snapshot import register_hooks

    register_hooks(_api)
