"""HTTP requests inside API Gateway's events, read and written with the standard library alone.

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
        # REST APIs and function URLs send an encoded path, HTTP APIs a decoded one
        # (https://github.com/middleapi/standard-server/pull/93). Decoding twice is harmless: no route or
        # model has a "%" in its name. Mangum decodes too, so both entry points see one path.
        from urllib.parse import unquote

        path = unquote(path)
    fields = event.get("headers") or {}
    headers = {name.lower(): value for name, value in fields.items() if isinstance(value, str)}
    return HttpEvent(method, path, headers, event.get("body") or "", bool(event.get("isBase64Encoded")))


def principal_of(event: Mapping[str, Any]) -> str:
    """The caller's name from the gateway's authorizer; "" if no authorizer names one.

    - A signature (IAM): account and user, or role. A role's session is left out: it changes with each
      execution environment of the caller. Cognito's identity is kept, as all its users share one role.
    - A token (JWT, a user pool): its issuer and subject, or its client where no user signed in.
    - A Lambda authorizer: `principalId`, which payload 2.0 has only in the context that the authorizer
      returns.

    Headers of a load balancer are ignored: only their signature would show whether the user is forged.
    """
    gateway = event.get("requestContext") or {}
    authorizer, identity = gateway.get("authorizer") or {}, gateway.get("identity") or {}
    if iam := authorizer.get("iam"):
        cognito = (iam.get("cognitoIdentity") or {}).get("identityId")
        return _signer(iam.get("accountId"), iam.get("userId"), cognito)
    if claims := (authorizer.get("jwt") or authorizer).get("claims"):
        subject = claims.get("sub") or claims.get("client_id")
        return f"jwt {claims.get('iss', '')} {subject}" if subject else ""
    if principal := (authorizer.get("lambda") or authorizer).get("principalId"):
        return f"lambda {principal}"
    return _signer(identity.get("accountId"), identity.get("caller"), identity.get("cognitoIdentityId"))


def _signer(account: str | None, user: str | None, cognito: str | None) -> str:
    return f"iam {account} {cognito or user.partition(':')[0]}" if account and user else ""


def http_event(method: str, path: str, body: object = None) -> dict[str, Any]:
    """The event of an HTTP API (payload 2.0) for a request; `body` is sent as JSON."""
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
    """The path without the HTTP API's stage, which only the default stage leaves out."""
    return path.removeprefix(f"/{stage}") if stage and stage != "$default" else path
