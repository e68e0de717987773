"""Calls of AWS's JSON protocol: one path, the operation in a header, JSON in and out.

Signatures are not checked.
Source: https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html, read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from coldframe_local.emulator.gateway.http import NOT_JSON, HttpRequest, HttpResponse, header
from coldframe_local.emulator.lambda_service.lambda_types import LambdaException

MAX_BODY_BYTES = 1_000_000
_TARGET = b"x-amz-target"

Operation = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class Refused(Exception):
    """A call that cannot be answered. error: AWS's name of the reason."""

    def __init__(self, error: str, text: str) -> None:
        super().__init__(text)
        self.error = error


class AwsJson:
    """Answers calls of the operations of one service."""

    max_body_bytes = MAX_BODY_BYTES

    def __init__(self, service: str, operations: Mapping[str, Operation]) -> None:
        self._service = service
        self._operations = operations

    def too_large(self) -> HttpResponse:
        """The answer to a body that was not read to its end."""
        return _failed("RequestEntityTooLarge", f"A call has {MAX_BODY_BYTES} bytes at most.")

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The answer to one call; errors are in AWS's shape."""
        name = header(request.headers, _TARGET).rpartition(".")[2]
        operation = self._operations.get(name)
        if operation is None:
            return _failed(
                "UnknownOperationException",
                f"{self._service} here answers {', '.join(self._operations)} in AWS's JSON protocol, "
                f"and was asked for {name or 'nothing by the header x-amz-target'}.",
            )
        try:
            parameters = msgspec.json.decode(request.body, type=dict[str, Any])
            return _answer(HTTPStatus.OK, await operation(parameters))
        except (*NOT_JSON, msgspec.ValidationError) as exc:
            return _failed("SerializationException", f"The call is not a JSON object: {exc}")
        except (KeyError, TypeError, ValueError) as exc:
            return _failed("ValidationError", f"The call lacks something, or has it wrong: {exc!r}")
        except Refused as exc:
            return _failed(exc.error, str(exc))
        except LambdaException as exc:
            return _failed(type(exc).__name__, str(exc))


def _failed(error: str, text: str) -> HttpResponse:
    return _answer(HTTPStatus.BAD_REQUEST, {"__type": error, "message": text})


def _answer(status: HTTPStatus, body: dict[str, Any]) -> HttpResponse:
    content_type = (b"content-type", b"application/x-amz-json-1.0")
    return HttpResponse(status, [content_type], msgspec.json.encode(body))
