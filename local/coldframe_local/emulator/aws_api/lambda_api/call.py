"""One call of the Lambda API, and the errors that it can end in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from coldframe_local.emulator.gateway.http import NOT_JSON, HttpRequest, HttpResponse, header
from coldframe_local.emulator.lambda_service.lambda_types import (
    InvalidParameterValueException,
    LambdaException,
)

Item = TypeVar("Item")


class RequestTooLargeException(LambdaException):
    """The event is over Lambda's limit."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class InvalidRequestContentException(LambdaException):
    """The event, or the client context, is not JSON."""


class UnknownOperationException(LambdaException):
    """An operation that is not imitated."""

    status = HTTPStatus.NOT_IMPLEMENTED


@dataclass(frozen=True, slots=True)
class Call:
    """A request, its path taken apart.

    name, qualifier: of the function; "" and None where the path has none. alias: "" where the path has none.
    """

    request: HttpRequest
    query: Mapping[str, str]
    name: str = ""
    qualifier: str | None = None
    alias: str = ""

    def header(self, name: bytes) -> str:
        """A header's value, or ""."""
        return header(self.request.headers, name)

    def body(self) -> dict[str, Any]:
        """The JSON object of the body; an empty one for any other body."""
        try:
            content = msgspec.json.decode(self.request.body)
        except NOT_JSON:
            return {}
        return content if isinstance(content, dict) else {}

    def number(self, key: str) -> int:
        """A whole number of the body. Raises InvalidParameterValueException."""
        value = self.body().get(key)
        if type(value) is not int:
            raise InvalidParameterValueException(f"The body has no {key}, expected a whole number.")
        return value

    def text(self, key: str) -> str:
        """A text of the body. Raises InvalidParameterValueException."""
        value = self.body().get(key)
        if not isinstance(value, str) or not value:
            raise InvalidParameterValueException(f"The body has no {key}, expected a text.")
        return value

    def needed_qualifier(self) -> str:
        """Raises InvalidParameterValueException where there is none."""
        if self.qualifier is None:
            raise InvalidParameterValueException("Qualifier is missing, expected an alias or a version.")
        return self.qualifier

    def page(self, items: Sequence[Item]) -> tuple[Sequence[Item], str | None]:
        """The page of a list that is asked for, and where the next one starts."""
        try:
            start, size = int(self.query.get("Marker") or 0), int(self.query.get("MaxItems") or 50)
        except ValueError as exc:
            raise InvalidParameterValueException("Marker or MaxItems is not a number.") from exc
        if start < 0 or size < 1:
            raise InvalidParameterValueException("Expected a Marker from 0 and MaxItems from 1.")
        end = start + size
        return items[start:end], str(end) if end < len(items) else None


Operation = Callable[[Call], Awaitable[HttpResponse]]
"""Answers a call. Raises LambdaException."""
