"""HTTP requests inside API Gateway's events, read and made with the standard library alone.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html,
read 2026-11-21.
"""

import json
from collections.abc import Mapping
from typing import Any


class HttpEvent:
    """The request of an event. Header names are lower case, the path is decoded and without its stage."""

    __slots__ = ("body", "headers", "is_base64", "method", "path")

    def __init__(self, method: str, path: str, headers: dict[str, str], body: str, is_base64: bool) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.is_base64 = is_base64


def read_http(event: Mapping[str, Any]) -> HttpEvent | None:
    """The request of an HTTP API (payload 2.0) or REST API (1.0); None for an event of another source."""
    gateway = event.get("requestContext") or {}
    if event.get("version") == "2.0" and "http" in gateway:
        method, path = gateway["http"]["method"], _without_stage(event["rawPath"], gateway.get("stage"))
    elif "httpMethod" in event and "path" in event:
        method, path = event["httpMethod"], event["path"]
    else:
        return None
    if "%" in path:
        # REST APIs and function URLs send the path encoded, HTTP APIs have decoded it
        # (https://github.com/middleapi/standard-server/pull/93). Once more does no harm, as no route or
        # model has a "%" in its name, and Mangum does the same: both doors see one path.
        from urllib.parse import unquote

        path = unquote(path)
    given = event.get("headers") or {}
    headers = {name.lower(): value for name, value in given.items() if isinstance(value, str)}
    return HttpEvent(method, path, headers, event.get("body") or "", bool(event.get("isBase64Encoded")))


def http_event(method: str, path: str, body: object = None) -> dict[str, Any]:
    """What an HTTP API (payload 2.0) sends for a request; `body` leaves as JSON."""
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": ""}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": {"http": http, "routeKey": "$default", "stage": "$default"},
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }


def _without_stage(path: str, stage: str | None) -> str:
    """An HTTP API puts its stage before the path, unless it is the default one."""
    return path.removeprefix(f"/{stage}") if stage and stage != "$default" else path
