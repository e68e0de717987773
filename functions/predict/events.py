"""API Gateway events to requests, and replies to what API Gateway reads."""

import base64
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from coldframe.api.api import Reply, Request

Event = Mapping[str, Any]
Response = dict[str, Any]


class Context(Protocol):
    """What we use of Lambda's context object."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int: ...


def read_event(event: Event, context: Context) -> Request:
    """The request inside an API Gateway event.

    Raises ValueError for an event of another source.
    """
    gateway = event.get("requestContext") or {}
    if event.get("version") == "2.0" and "http" in gateway:
        method, path = gateway["http"]["method"], _without_stage(event["rawPath"], gateway.get("stage"))
    elif "httpMethod" in event and "path" in event:
        method, path = event["httpMethod"], event["path"]
    else:
        raise ValueError(
            "This event is no API Gateway event: expected payload 2.0 (HTTP API) or 1.0 (REST API)."
            " Call the function through its API, or send an event in that form."
        )
    if "%" in path:
        # REST APIs and function URLs send the path encoded, HTTP APIs have decoded it
        # (https://github.com/middleapi/standard-server/pull/93). Once more does no harm, as no route or
        # model has a "%" in its name, and Mangum does the same: both doors see one path.
        from urllib.parse import unquote

        path = unquote(path)
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    return Request(method, path, headers, _body(event), context.aws_request_id, time_left_s=clock_of(context))


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


def clock_of(context: Context) -> Callable[[], float]:
    """Seconds until Lambda stops this invocation, whenever asked."""
    return lambda: context.get_remaining_time_in_millis() / 1e3
