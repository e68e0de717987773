"""Access to the API, for the OpenAPI document: authentication schemes, and answers to refused callers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

_MESSAGE = {
    "application/json": {
        "schema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
    }
}


@dataclass(frozen=True)
class Access:
    """Access control and limits in front of the API.

    schemes: OpenAPI's `securitySchemes`, by name. requirement: names of the schemes that a request needs.
    open_paths: paths without authentication. refusals: responses by status, for all other paths.
    """

    schemes: Mapping[str, Schema] = field(default_factory=dict)
    requirement: tuple[Schema, ...] = ()
    open_paths: tuple[str, ...] = ()
    refusals: Mapping[str, Schema] = field(default_factory=dict)


def _by_gateway(description: str) -> Schema:
    """API Gateway's own answer. An emulator may answer with a problem instead."""
    return {"description": description, "content": _MESSAGE}


# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-access-control.html and
# http-api-throttling.html, read 2026-11-22
GATEWAY = Access(
    schemes={
        "iam": {
            "type": "apiKey",
            "name": "Authorization",
            "in": "header",
            "x-amazon-apigateway-authtype": "awsSigv4",
            "description": "AuthMode=IAM: a signature, AWS Signature Version 4, of the service execute-api.",
        },
        "jwt": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "AuthMode=JWT: a token of JwtIssuer for JwtAudience.",
        },
    },
    requirement=({"iam": []}, {"jwt": []}, {}),
    refusals={
        "401": _by_gateway("AuthMode=JWT: the request has no valid token."),
        "403": _by_gateway("AuthMode=IAM: the request is not signed, or its signer may not call."),
        "429": _by_gateway("More requests than ThrottleRate and ThrottleBurst let through. Try again."),
        "500": _by_gateway("The function failed."),
        "503": _by_gateway("All environments of the function are busy, or the answer took over 30 s."),
    },
)
"""API Gateway before the function. One document for every AuthMode: the function does not know its own."""

ANYONE = Access()
"""No access control."""


def by_token(open_paths: tuple[str, ...]) -> Access:
    """A server that requires a bearer token, except for `open_paths`."""
    refusal = {
        "description": "The request has no bearer token that the server accepts.",
        "headers": {"WWW-Authenticate": {"schema": {"type": "string"}}},
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    token = {"type": "http", "scheme": "bearer", "description": "A token of COLDFRAME_TOKENS_FILE."}
    return Access({"token": token}, ({"token": []},), open_paths, {"401": refusal})
