"""HTTP request to API Gateway event (payload 2.0), and function result to HTTP response.

Pure functions; payload 1.0 is in `local.gateway.payload_v1`. The shapes are those of
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
(read 2026-11).
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from local.gateway.definitions import DEFAULT_ROUTE, DEFAULT_STAGE
from local.lambda_service.settings import ACCOUNT_ID

Headers = list[tuple[bytes, bytes]]

API_ID = "local"

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not JSON, not UTF-8, or nested too deep."""

# The gateway sets these itself, or they belong to one connection only.
NOT_FORWARDED = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"})


class MalformedResponse(Exception):
    """A function's result that API Gateway cannot turn into an HTTP response."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it came in: header names in lower case, path and query still percent-encoded."""

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    source_ip: str
    protocol: str = "HTTP/1.1"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response without the headers that belong to the connection."""

    status: int
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class Arrived:
    """Where and when a request came in.

    request_id: the gateway's, which is not the invocation's. now: seconds since the epoch.
    route_key: `$default`, or `GET /pets/{id}`. resource: the route's path.
    """

    request_id: str
    now: float
    api_id: str = API_ID
    stage: str = DEFAULT_STAGE
    route_key: str = DEFAULT_ROUTE
    resource: str = DEFAULT_ROUTE
    path_parameters: Mapping[str, str] = field(default_factory=dict)


def header(headers: Headers, name: bytes) -> str:
    """The value of a header, the first one of several; "" when there is none. name: in lower case."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def event_from_request(request: HttpRequest, arrived: Arrived) -> dict[str, Any]:
    """The payload 2.0 event of a request."""
    headers = _joined(request.headers)
    cookies = headers.pop("cookie", None)
    headers |= forwarded_headers(request, headers.get("host", ""))
    body, is_base64 = event_body(request.body, headers.get("content-type", ""))
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": arrived.route_key,
        # Decoded, unlike a REST API's: https://github.com/middleapi/standard-server/pull/93
        "rawPath": unquote(request.path),
        "rawQueryString": request.query,
        "headers": headers,
        "requestContext": _request_context(request, headers, arrived),
        "isBase64Encoded": is_base64,
    }
    # The gateway leaves these four out when there is nothing to say.
    if cookies is not None:
        event["cookies"] = cookies.split("; ")
    if request.query:
        event["queryStringParameters"] = _joined_query(request.query)
    if arrived.path_parameters:
        event["pathParameters"] = dict(arrived.path_parameters)
    if request.body:
        event["body"] = body
    return event


def response_from_result(payload: bytes) -> HttpResponse:
    """The HTTP response to a function's result.

    payload: the JSON that the function returned. An object with `statusCode` says all
    itself; any other value is a 200 of type application/json.
    Raises MalformedResponse when the result is neither.
    """
    try:
        result = msgspec.json.decode(payload)
    except NOT_JSON as exc:
        raise MalformedResponse("the result is not JSON") from exc
    if isinstance(result, dict) and "statusCode" in result:
        return _full_response(result)
    body = result.encode() if isinstance(result, str) else payload
    return HttpResponse(HTTPStatus.OK, [(b"content-type", b"application/json")], body)


def gateway_answer(status: int, message: str, error_type: str = "") -> HttpResponse:
    """One of the gateway's own answers, as AWS sends it. error_type: of a REST API."""
    headers = [(b"content-type", b"application/json")]
    if error_type:
        headers.append((b"x-amzn-errortype", error_type.encode("ascii")))
    return HttpResponse(status, headers, msgspec.json.encode({"message": message}))


def gateway_problem(
    status: HTTPStatus,
    aws: Mapping[str, str],
    detail: str,
    *headers: tuple[bytes, bytes],
) -> HttpResponse:
    """One of the gateway's own answers: AWS's members, and those of RFC 9457 beside them.

    A caller who reads `message` finds what AWS says, one who reads the contract finds a problem.
    """
    problem = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    content_type = (b"content-type", b"application/problem+json")
    return HttpResponse(status, [content_type, *headers], msgspec.json.encode({**aws, **problem}))


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers as a mapping; values of a repeated header are joined by commas, cookies as one header."""
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name not in joined:
            joined[name] = value
        else:
            joined[name] += ("; " if name == "cookie" else ",") + value
    return joined


def forwarded_headers(request: HttpRequest, host: str) -> dict[str, str]:
    """What the gateway says about the client's side of the connection."""
    port = host.rpartition(":")[2]
    return {
        "x-forwarded-for": request.source_ip,
        "x-forwarded-port": port if port.isdigit() else "80",
        "x-forwarded-proto": "http",
    }


def _joined_query(query: str) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def event_body(body: bytes, content_type: str) -> tuple[str, bool]:
    """The body as text, or in base64, and which of the two.

    The gateway goes by the content type, not by the bytes: JSON posted as
    application/x-www-form-urlencoded (curl's default) arrives in base64. Bytes that are
    not UTF-8 cannot be carried as text, whatever their type says.
    """
    if _is_text(content_type):
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode("ascii"), bool(body)


def _is_text(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type.startswith("text/") or media_type.endswith(
        ("/json", "+json", "/xml", "+xml", "/javascript")
    )


def _request_context(request: HttpRequest, headers: Mapping[str, str], arrived: Arrived) -> dict[str, Any]:
    domain_name = headers.get("host", "localhost")
    return {
        "accountId": ACCOUNT_ID,
        "apiId": arrived.api_id,
        "domainName": domain_name,
        "domainPrefix": domain_name.partition(".")[0],
        "http": {
            "method": request.method,
            "path": unquote(request.path),
            "protocol": request.protocol,
            "sourceIp": request.source_ip,
            "userAgent": headers.get("user-agent", ""),
        },
        "requestId": arrived.request_id,
        "routeKey": arrived.route_key,
        "stage": arrived.stage,
        "time": clf_time(arrived.now),
        "timeEpoch": int(arrived.now * 1000),
    }


def clf_time(now: float) -> str:
    """A time as the gateways write it: `12/Mar/2024:19:03:58 +0000`."""
    return time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now))


def _full_response(result: Mapping[str, Any]) -> HttpResponse:
    headers = _response_headers(result.get("headers") or {}, result.get("cookies") or [])
    return HttpResponse(response_status(result["statusCode"]), headers, response_body(result))


def response_status(value: Any) -> int:
    """The status of a result; API Gateway also takes the number as a string."""
    try:
        status = int(value)
    except (TypeError, ValueError):
        status = 0
    if isinstance(value, (bool, float)) or not 200 <= status <= 599:
        raise MalformedResponse("`statusCode` is not a number from 200 to 599")
    return status


def _response_headers(headers: Any, cookies: Any) -> Headers:
    if not isinstance(headers, dict):
        raise MalformedResponse("`headers` is not an object")
    if not isinstance(cookies, list):
        raise MalformedResponse("`cookies` is not a list")
    lines = [
        (header_bytes(name.lower()), header_bytes(value))
        for name, value in headers.items()
        if name.lower() not in NOT_FORWARDED
    ]
    lines += [(b"set-cookie", header_bytes(cookie)) for cookie in cookies]
    if all(name != b"content-type" for name, _ in lines):
        lines.append((b"content-type", b"text/plain;charset=UTF-8"))
    return lines


def header_bytes(value: Any) -> bytes:
    """A header's name or value; numbers and booleans as JSON writes them."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if any(control in text for control in "\r\n\0"):
        raise MalformedResponse("a header contains a line break")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as exc:
        raise MalformedResponse("a header contains characters outside Latin-1") from exc


def response_body(result: Mapping[str, Any]) -> bytes:
    """The body of a result, decoded when it says that it is base64."""
    body = result.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise MalformedResponse("`body` is not a string")
    if not result.get("isBase64Encoded"):
        return body.encode()
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise MalformedResponse("`body` is not base64, as `isBase64Encoded` says") from exc
