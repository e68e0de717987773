"""HTTP request to payload 2.0 event, and its result to HTTP response. Pure.

Payload 1.0 is in `coldframe_local.emulator.gateway.payload_v1`. The shapes are those of
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
(read 2026-11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from coldframe_local.emulator.gateway.arrival import Arrived, clf_time, event_body, gateway_headers, signer
from coldframe_local.emulator.gateway.http import NOT_JSON, Headers, HttpRequest, HttpResponse
from coldframe_local.emulator.gateway.result import (
    MalformedResponse,
    body_of,
    header_lines,
    header_value,
    status_of,
)
from coldframe_local.emulator.lambda_service.settings import ACCOUNT_ID

_DEFAULT_TYPE = b"text/plain;charset=UTF-8"


def event_from_request(request: HttpRequest, arrived: Arrived) -> dict[str, Any]:
    """The payload 2.0 event of a request."""
    headers = _joined(request.headers)
    cookies = headers.pop("cookie", None)
    headers |= gateway_headers(request, arrived, headers)
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


def _joined_query(query: str) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _request_context(request: HttpRequest, headers: Mapping[str, str], arrived: Arrived) -> dict[str, Any]:
    domain_name = headers.get("host", "localhost")
    key = signer(request, arrived)
    return {
        **({"authorizer": {"iam": _signed_by(key)}} if key else {}),
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


def _signed_by(access_key: str) -> dict[str, Any]:
    """Members of a signed request's caller. The key stands for its user: this machine has no accounts."""
    return {
        "accessKey": access_key,
        "accountId": ACCOUNT_ID,
        "callerId": access_key,
        "cognitoIdentity": None,
        "principalOrgId": None,
        "userArn": f"arn:aws:iam::{ACCOUNT_ID}:user/{access_key}",
        "userId": access_key,
    }


def _full_response(result: Mapping[str, Any]) -> HttpResponse:
    headers = _headers(result.get("headers") or {}, result.get("cookies") or [])
    return HttpResponse(status_of(result["statusCode"]), headers, body_of(result))


def _headers(headers: Any, cookies: Any) -> Headers:
    if not isinstance(headers, dict):
        raise MalformedResponse("`headers` is not an object")
    if not isinstance(cookies, list):
        raise MalformedResponse("`cookies` is not a list")
    return header_lines(headers.items(), _DEFAULT_TYPE) + [
        (b"set-cookie", header_value(cookie)) for cookie in cookies
    ]
