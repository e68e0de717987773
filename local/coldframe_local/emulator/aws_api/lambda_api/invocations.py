"""Invoke, in its three kinds, and what is known of asynchronous events."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from coldframe.capacity.admission import LATEST, Throttle
from coldframe.capacity.limits import ASYNC_PAYLOAD, PAYLOAD
from coldframe_local.emulator.aws_api.lambda_api.answers import answer, response
from coldframe_local.emulator.aws_api.lambda_api.call import (
    Call,
    InvalidRequestContentException,
    Operation,
    RequestTooLargeException,
)
from coldframe_local.emulator.gateway.http import NOT_JSON, HttpResponse
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.event_sources.async_invocations import AsyncInvocations
from coldframe_local.emulator.lambda_service.event_sources.destinations import EventInvokeConfig
from coldframe_local.emulator.lambda_service.lambda_types import (
    InvalidParameterValueException,
    Invoked,
    ResourceNotFoundException,
)
from coldframe_local.emulator.lambda_service.report import InvocationStatus

MAX_EVENT_BYTES = PAYLOAD.value
MAX_ASYNC_EVENT_BYTES = ASYNC_PAYLOAD.value

_CONFIGS = "/2019-09-25/functions/{FunctionName}/event-invoke-config"
# Parameters of Invoke that the emulator does not support: refused, because AWS would answer otherwise.
_NOT_IMITATED = {
    b"x-amz-tenant-id": "TenantId: environments of one tenant each (TenancyConfig)",
    b"x-amz-durable-execution-name": "DurableExecutionName: durable executions (DurableConfig)",
}


class Invocations:
    """Operations on invocations."""

    def __init__(self, service: LambdaService, asynchronous: AsyncInvocations) -> None:
        self._service = service
        self._asynchronous = asynchronous

    def operations(self) -> dict[str, Operation]:
        """By method and path."""
        return {
            "POST /2015-03-31/functions/{FunctionName}/invocations": self._invoke,
            f"GET {_CONFIGS}": self._get_event_invoke_config,
            f"GET {_CONFIGS}/list": self._list_event_invoke_configs,
        }

    async def _invoke(self, call: Call) -> HttpResponse:
        kind = call.header(b"x-amz-invocation-type") or "RequestResponse"
        event = call.request.body or b"{}"
        limit = MAX_ASYNC_EVENT_BYTES if kind == "Event" else MAX_EVENT_BYTES
        if len(event) > limit:
            raise too_large(limit)
        _check_json(event)
        _check_imitated(call)
        context = _client_context(call.header(b"x-amz-client-context"))
        self._service.functions.get(call.name, call.qualifier)
        if kind == "DryRun":
            return answer(HTTPStatus.NO_CONTENT)
        if kind == "Event":  # which Lambda gives no client context
            self._asynchronous.send(call.name, call.qualifier, event)
            return answer(HTTPStatus.ACCEPTED)
        if kind != "RequestResponse":
            raise InvalidParameterValueException(
                f"InvocationType is {kind!r}, expected RequestResponse, Event or DryRun."
            )
        invoked = await self._service.invoke(call.name, call.qualifier, event, context)
        if isinstance(invoked, Throttle):
            return _throttled(invoked)
        return _invoked(invoked, tail=call.header(b"x-amz-log-type") == "Tail")

    async def _get_event_invoke_config(self, call: Call) -> HttpResponse:
        qualifier = call.qualifier or LATEST
        config = self._service.list_event_invoke_configs(call.name).get(qualifier)
        if config is None:
            arn = self._service.arn(call.name, qualifier)
            raise ResourceNotFoundException(f"The function {arn} doesn't have an EventInvokeConfig")
        return answer(HTTPStatus.OK, self._shape(call.name, qualifier, config))

    async def _list_event_invoke_configs(self, call: Call) -> HttpResponse:
        page, marker = call.page(list(self._service.list_event_invoke_configs(call.name).items()))
        configs = [self._shape(call.name, qualifier, config) for qualifier, config in page]
        return answer(HTTPStatus.OK, {"FunctionEventInvokeConfigs": configs, "NextMarker": marker})

    def _shape(self, name: str, qualifier: str, config: EventInvokeConfig) -> Mapping[str, Any]:
        destinations = {"OnSuccess": config.on_success, "OnFailure": config.on_failure}
        return {
            "FunctionArn": self._service.arn(name, qualifier),
            "MaximumRetryAttempts": config.maximum_retry_attempts,
            "MaximumEventAgeInSeconds": int(config.maximum_age_s),
            "DestinationConfig": {
                kind: {"Destination": arn} if arn is not None else {} for kind, arn in destinations.items()
            },
        }


def too_large(limit: int) -> RequestTooLargeException:
    """An event of more bytes."""
    return RequestTooLargeException(
        f"Request must be smaller than {limit} bytes for the InvokeFunction operation"
    )


def _check_json(event: bytes) -> None:
    try:
        msgspec.json.decode(event)
    except NOT_JSON as exc:
        raise InvalidRequestContentException(
            "Could not parse request body into json: the payload is not JSON. Send a JSON document."
        ) from exc


def _check_imitated(call: Call) -> None:
    for name, what in _NOT_IMITATED.items():
        if call.header(name):
            raise InvalidParameterValueException(f"{what} are not imitated here. Leave it out.")


def _client_context(encoded: str) -> str:
    """The client context as JSON in ASCII, fit for a header; "" for none. The error's text is Lambda's."""
    if not encoded:
        return ""
    try:
        context = json.loads(base64.b64decode(encoded, validate=True))
    except ValueError:
        context = None
    if not isinstance(context, dict):
        raise InvalidRequestContentException("Client context must be a valid Base64-encoded JSON object.")
    return json.dumps(context)


def _invoked(invoked: Invoked, *, tail: bool) -> HttpResponse:
    headers = {"x-amz-executed-version": invoked.executed_version}
    if invoked.outcome.status is not InvocationStatus.SUCCESS:
        headers["x-amz-function-error"] = "Unhandled"
    if tail:
        headers["x-amz-log-result"] = base64.b64encode(invoked.log_tail).decode("ascii")
    return response(HTTPStatus.OK, invoked.outcome.payload, headers, invoked.request_id)


def _throttled(throttle: Throttle) -> HttpResponse:
    body = {"Reason": throttle.reason, "Type": "User", "message": "Rate Exceeded."}
    headers = {"x-amzn-errortype": "TooManyRequestsException"}
    return response(HTTPStatus.TOO_MANY_REQUESTS, msgspec.json.encode(body), headers)
