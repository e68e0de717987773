"""The Lambda API for boto3 and the AWS CLI: `--endpoint-url http://127.0.0.1:3000`.

Paths and shapes are those of botocore's model `lambda/2015-03-31`; tests hold this package against it.
Signatures are not checked.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

from starlette.routing import compile_path

from coldframe_local.emulator.aws_api.lambda_api.answers import error
from coldframe_local.emulator.aws_api.lambda_api.call import Call, Operation, UnknownOperationException
from coldframe_local.emulator.aws_api.lambda_api.concurrency import ConcurrencyCalls
from coldframe_local.emulator.aws_api.lambda_api.functions import FunctionCalls
from coldframe_local.emulator.aws_api.lambda_api.invocations import MAX_EVENT_BYTES, Invocations, too_large
from coldframe_local.emulator.gateway.http import HttpRequest, HttpResponse
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.event_sources.async_invocations import AsyncInvocations
from coldframe_local.emulator.lambda_service.lambda_types import (
    InvalidParameterValueException,
    LambdaException,
    ResourceNotFoundException,
)

_DATED = re.compile(r"/20\d\d-\d\d-\d\d/(functions|account-settings|tags|layers|event-source-mappings)(/|$)")
_FUNCTION = re.compile(
    r"(?:arn:(?P<partition>aws[a-z-]*):lambda:(?P<region>[a-z0-9-]+):)?"
    r"(?:(?P<account>\d{12}):)?(?:function:)?"
    r"(?P<name>[a-zA-Z0-9-_]+)(?::(?P<qualifier>\$LATEST|[a-zA-Z0-9-_]+))?"
)


def is_lambda_api(path: str) -> bool:
    """Whether a path is the Lambda API's and not an HTTP API's."""
    return _DATED.match(path) is not None


class LambdaApi:
    """Answers calls."""

    max_body_bytes = MAX_EVENT_BYTES

    def __init__(self, service: LambdaService, asynchronous: AsyncInvocations) -> None:
        self._service = service
        operations = (
            Invocations(service, asynchronous).operations()
            | FunctionCalls(service).operations()
            | ConcurrencyCalls(service).operations()
        )
        self._routes = [_route(address, operation) for address, operation in operations.items()]

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The answer to one call; errors are in AWS's shapes."""
        try:
            operation, call = self._match(request)
            return await operation(call)
        except LambdaException as exc:
            return error(exc)

    def too_large(self) -> HttpResponse:
        """The answer to a body that was not read to its end."""
        return error(too_large(MAX_EVENT_BYTES))

    def _match(self, request: HttpRequest) -> tuple[Operation, Call]:
        path = request.path.rstrip("/")
        for method, pattern, operation in self._routes:
            if request.method == method and (match := pattern.match(path)):
                return operation, self._call(request, match.groupdict())
        raise UnknownOperationException(
            f"{request.method} {path} is not imitated. Functions come from the template, and the Lambda API "
            "here has no operation of this method and path."
        )

    def _call(self, request: HttpRequest, parts: dict[str, str]) -> Call:
        query = dict(parse_qsl(request.query, keep_blank_values=True))
        if "FunctionName" not in parts:
            return Call(request, query)
        name, qualifier = self._function_name(unquote(parts["FunctionName"]), query.get("Qualifier"))
        return Call(request, query, name, qualifier, unquote(parts.get("Name", "")))

    def _function_name(self, text: str, qualifier: str | None) -> tuple[str, str | None]:
        """Name and qualifier of a name, a partial ARN or an ARN."""
        match = _FUNCTION.fullmatch(text)
        if match is None:
            raise InvalidParameterValueException(
                f"The function {text!r} was asked for, expected a name, an ARN or a part of one."
            )
        own = match["qualifier"]
        if own and qualifier and own != qualifier:
            raise InvalidParameterValueException(
                "The derived qualifier from the function name does not match the specified qualifier."
            )
        region = self._service.functions.get(match["name"]).region
        if match["region"] and match["region"] != region:
            raise ResourceNotFoundException(
                f"Functions from '{match['region']}' are not reachable in this region ('{region}')"
            )
        return match["name"], own or qualifier


def _route(address: str, operation: Operation) -> tuple[str, re.Pattern[str], Operation]:
    method, path = address.split(" ")
    return method, compile_path(path)[0], operation
