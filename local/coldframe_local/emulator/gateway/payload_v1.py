"""HTTP request to payload 1.0 event, and its result to HTTP response.

REST APIs know only this payload; an HTTP API uses it where a route asks for it.

Pure functions. The shapes are those of
https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
(read 2026-11).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from coldframe_local.emulator.gateway.arrival import Arrived, clf_time, event_body, gateway_headers, signer
from coldframe_local.emulator.gateway.definitions import DEFAULT_STAGE, ApiKind
from coldframe_local.emulator.gateway.http import NOT_JSON, Headers, HttpRequest, HttpResponse, header
from coldframe_local.emulator.gateway.result import MalformedResponse, body_of, header_lines, status_of
from coldframe_local.emulator.lambda_service.settings import ACCOUNT_ID

# More than these in a result, and a REST API calls it malformed.
_MEMBERS = frozenset({"statusCode", "headers", "multiValueHeaders", "body", "isBase64Encoded"})
_DEFAULT_TYPE = {ApiKind.REST: b"application/json", ApiKind.HTTP: b"text/plain;charset=UTF-8"}


def event_from_request(
    request: HttpRequest, arrived: Arrived, kind: ApiKind, path: str, binary_media_types: Sequence[str] = ()
) -> dict[str, Any]:
    """The payload 1.0 event of a request. path: without the stage, percent-encoded."""
    headers = _values_by_name(request.headers)
    host = headers.get("host", [""])[0]
    joined = {name: ", ".join(values) for name, values in headers.items()}
    headers |= {name: [value] for name, value in gateway_headers(request, arrived, joined).items()}
    query = _query(request.query)
    content_type = headers.get("content-type", [""])[0]
    body, is_base64 = _body(kind, request.body, content_type, binary_media_types)
    event = {
        "resource": arrived.resource,
        # An HTTP API gives the path decoded and with its stage, a REST API as it came and without.
        "path": path if kind is ApiKind.REST else unquote(request.path),
        "httpMethod": request.method,
        "headers": {name: values[-1] for name, values in headers.items()},
        "multiValueHeaders": headers,
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": dict(arrived.path_parameters) or None,
        "stageVariables": None,
        "requestContext": _request_context(request, arrived, kind, host),
        "body": body if request.body else None,
        "isBase64Encoded": is_base64,
    }
    return event if kind is ApiKind.REST else {"version": "1.0", **event}


def response_from_result(
    payload: bytes, kind: ApiKind, accept: str = "", binary_media_types: Sequence[str] = ()
) -> HttpResponse:
    """The HTTP response to a function's result. accept: the request's header.

    Raises MalformedResponse when the result is not a proxy response.
    """
    try:
        result = msgspec.json.decode(payload)
    except NOT_JSON as exc:
        raise MalformedResponse("the result is not JSON") from exc
    if not isinstance(result, dict):
        raise MalformedResponse("the result is not an object")
    unknown = result.keys() - _MEMBERS
    if unknown and kind is ApiKind.REST:
        # Only their number: what functions answer stays out of the log.
        raise MalformedResponse(f"the result has {len(unknown)} members that a REST API does not know")
    status = status_of(result.get("statusCode"))
    return HttpResponse(
        status, _headers(result, kind), _response_body(result, kind, accept, binary_media_types)
    )


def is_binary(media_types: Sequence[str], content_type: str) -> bool:
    """Whether a REST API with these `BinaryMediaTypes` takes a body for bytes."""
    media_type = content_type.partition(";")[0].strip().lower()
    kind = media_type.partition("/")[0]
    return not {"*/*", media_type, f"{kind}/*"}.isdisjoint(each.lower() for each in media_types)


def _body(
    kind: ApiKind, body: bytes, content_type: str, binary_media_types: Sequence[str]
) -> tuple[str, bool]:
    if kind is ApiKind.HTTP:
        return event_body(body, content_type)
    if is_binary(binary_media_types, content_type):
        return base64.b64encode(body).decode("ascii"), bool(body)
    # Anything else is text to a REST API, which bytes that are none do not survive.
    return body.decode(errors="replace"), False


def _response_body(
    result: Mapping[str, Any], kind: ApiKind, accept: str, binary_media_types: Sequence[str]
) -> bytes:
    """A REST API decodes base64 only for a client whose first accepted type is a binary one."""
    decodes = kind is ApiKind.HTTP or is_binary(binary_media_types, accept.partition(",")[0])
    return body_of(result if decodes else {**result, "isBase64Encoded": False})


def _headers(result: Mapping[str, Any], kind: ApiKind) -> Headers:
    single, multiple = result.get("headers") or {}, result.get("multiValueHeaders") or {}
    if not isinstance(single, dict) or not isinstance(multiple, dict):
        raise MalformedResponse("`headers` or `multiValueHeaders` is not an object")
    if not all(isinstance(values, list) for values in multiple.values()):
        raise MalformedResponse("`multiValueHeaders` holds something else than lists")
    lines = [(name, value) for name, values in _merged(single, multiple).items() for value in values]
    return header_lines(lines, _DEFAULT_TYPE[kind])


def _merged(single: Mapping[str, Any], multiple: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Both together; where both have a name, the list wins."""
    multiple_names = {name.lower() for name in multiple}
    return {name: [value] for name, value in single.items() if name.lower() not in multiple_names} | dict(
        multiple
    )


def _values_by_name(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return values


def _query(query: str) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        values.setdefault(name, []).append(value)
    return values


def _request_context(request: HttpRequest, arrived: Arrived, kind: ApiKind, host: str) -> dict[str, Any]:
    return {
        "accountId": ACCOUNT_ID,
        "apiId": arrived.api_id,
        "domainName": host,
        "domainPrefix": host.partition(".")[0],
        "extendedRequestId": arrived.request_id,
        "httpMethod": request.method,
        "identity": {
            **dict.fromkeys(_IDENTITY),
            **_signed_by(signer(request, arrived)),
            "sourceIp": request.source_ip,
            "userAgent": header(request.headers, b"user-agent") or None,
        },
        "path": unquote(request.path) if kind is ApiKind.HTTP else request.path,
        "protocol": request.protocol,
        "requestId": arrived.request_id,
        "requestTime": clf_time(arrived.now),
        "requestTimeEpoch": int(arrived.now * 1000),
        "resourceId": arrived.route_key if kind is ApiKind.HTTP else "local",
        "resourcePath": arrived.resource,
        "stage": arrived.stage or DEFAULT_STAGE,
    }


def _signed_by(access_key: str) -> dict[str, str]:
    """Members of a signed request's caller. The key stands for its user: this machine has no accounts."""
    if not access_key:
        return {}
    identity = dict.fromkeys(("accessKey", "caller", "user"), access_key)
    arn = f"arn:aws:iam::{ACCOUNT_ID}:user/{access_key}"
    return {**identity, "accountId": ACCOUNT_ID, "userArn": arn}


# Members of every caller; null without a signature.
_IDENTITY = (
    "accessKey",
    "accountId",
    "caller",
    "cognitoAuthenticationProvider",
    "cognitoAuthenticationType",
    "cognitoIdentityId",
    "cognitoIdentityPoolId",
    "principalOrgId",
    "sourceIp",
    "user",
    "userAgent",
    "userArn",
)
