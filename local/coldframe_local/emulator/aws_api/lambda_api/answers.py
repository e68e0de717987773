"""Answers of the Lambda API in AWS's shapes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from coldframe_local.emulator.gateway.http import HttpResponse
from coldframe_local.emulator.lambda_service.lambda_types import LambdaException, ResourceNotFoundException

# AWS spells the text `Message` in some of its errors, and `message` in the others.
_CAPITALISED = (ResourceNotFoundException,)


def answer(status: HTTPStatus, body: Any = None) -> HttpResponse:
    """A JSON document, or nothing."""
    return response(status, b"" if body is None else msgspec.json.encode(body), {})


def error(exception: LambdaException) -> HttpResponse:
    """An error, by AWS's name."""
    name = "Message" if isinstance(exception, _CAPITALISED) else "message"
    body = {"Type": "User", name: str(exception)}
    headers = {"x-amzn-errortype": type(exception).__name__}
    return response(exception.status, msgspec.json.encode(body), headers)


def response(
    status: HTTPStatus, body: bytes, headers: Mapping[str, str], request_id: str | None = None
) -> HttpResponse:
    """Headers of every answer. request_id: the invocation's, if there is one."""
    common = {"content-type": "application/json", "x-amzn-requestid": request_id or str(uuid.uuid4())}
    lines = [(name.encode("ascii"), value.encode("ascii")) for name, value in {**common, **headers}.items()]
    return HttpResponse(status, lines, body)


def revision(*parts: str) -> str:
    """An id that stays as long as what it stands for."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))
