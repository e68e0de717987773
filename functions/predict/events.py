"""API Gateway events to requests, and replies to what API Gateway reads."""

import base64
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from coldframe.api.api import Reply, Request
from coldframe.api.gateway_event import read_http

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
    found = read_http(event)
    if found is None:
        raise ValueError(
            "This event is no API Gateway event: expected payload 2.0 (HTTP API) or 1.0 (REST API)."
            " Call the function through its API, or send an event in that form."
        )
    body = base64.b64decode(found.body) if found.is_base64 else found.body.encode(errors="surrogatepass")
    time_left_s = clock_of(context)
    return Request(
        found.method, found.path, found.headers, body, context.aws_request_id, time_left_s=time_left_s
    )


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


def clock_of(context: Context) -> Callable[[], float]:
    """Seconds until Lambda stops this invocation, whenever asked."""
    return lambda: context.get_remaining_time_in_millis() / 1e3
