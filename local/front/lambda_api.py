"""The Lambda API for boto3 and the AWS CLI: `--endpoint-url http://127.0.0.1:3000`.

Paths and shapes are those of botocore's model `lambda/2015-03-31`; tests hold this module against it.
Signatures are not checked.
"""

from __future__ import annotations

import base64
import re
import sys
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec

from coldframe.capacity.admission import LATEST, Throttle
from coldframe.capacity.limits import ASYNC_PAYLOAD, PAYLOAD
from local.gateway.http import NOT_JSON, HttpRequest, HttpResponse, header
from local.lambda_service.async_invocations import AsyncInvocations
from local.lambda_service.destinations import EventInvokeConfig
from local.lambda_service.lambda_types import (
    InvalidParameterValueException,
    Invoked,
    LambdaException,
    ProvisionedConcurrencyConfig,
    ResourceNotFoundException,
)
from local.lambda_service.process import FunctionSettings
from local.lambda_service.report import InvocationStatus
from local.lambda_service.service import LambdaService

MAX_EVENT_BYTES = PAYLOAD.value
MAX_ASYNC_EVENT_BYTES = ASYNC_PAYLOAD.value

_DATED = re.compile(r"/20\d\d-\d\d-\d\d/(functions|account-settings|tags|layers|event-source-mappings)(/|$)")
_FUNCTION = re.compile(
    r"(?:arn:(?P<partition>aws[a-z-]*):lambda:(?P<region>[a-z0-9-]+):)?"
    r"(?:(?P<account>\d{12}):)?(?:function:)?"
    r"(?P<name>[a-zA-Z0-9-_]+)(?::(?P<qualifier>\$LATEST|[a-zA-Z0-9-_]+))?"
)

# What an alias is told that sends all requests to one version.
_NO_WEIGHTS: tuple[object, ...] = (None, {}, {"AdditionalVersionWeights": {}})

Item = TypeVar("Item")


class RequestTooLargeException(LambdaException):
    """The event is over Lambda's limit."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class InvalidRequestContentException(LambdaException):
    """The event is not JSON."""


class UnknownOperationException(LambdaException):
    """An operation that is not imitated."""

    status = HTTPStatus.NOT_IMPLEMENTED


# AWS spells the text `Message` in some of its errors, and `message` in the others.
_CAPITALISED = (ResourceNotFoundException,)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of the API, its path taken apart."""

    request: HttpRequest
    name: str
    qualifier: str | None
    rest: str
    query: Mapping[str, str]

    def header(self, name: bytes) -> str:
        return header(self.request.headers, name)

    def body(self) -> dict[str, Any]:
        """The JSON object of the body; an empty one for any other body."""
        try:
            content = msgspec.json.decode(self.request.body)
        except NOT_JSON:
            return {}
        return content if isinstance(content, dict) else {}

    def number(self, key: str) -> int:
        """A whole number of the body."""
        value = self.body().get(key)
        if type(value) is not int:
            raise InvalidParameterValueException(f"The body has no {key}, expected a whole number.")
        return value

    def needed_qualifier(self) -> str:
        if self.qualifier is None:
            raise InvalidParameterValueException("Qualifier is missing, expected an alias or a version.")
        return self.qualifier


def is_lambda_api(path: str) -> bool:
    """Whether a path is the Lambda API's and not an HTTP API's."""
    return _DATED.match(path) is not None


class LambdaApi:
    """Answers calls. images: names of the functions that are deployed as an image."""

    max_body_bytes = MAX_EVENT_BYTES

    def __init__(
        self, service: LambdaService, asynchronous: AsyncInvocations, images: Collection[str] = ()
    ) -> None:
        self._service = service
        self._asynchronous = asynchronous
        self._images = images

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The answer to one call; errors are in AWS's shapes."""
        try:
            call, operation = self._call(request)
            if operation == "POST functions/invocations":
                return await self._invoke(call)
            handler = self._operations().get(operation)
            if handler is None:
                raise UnknownOperationException(
                    f"{operation} is not imitated. Functions, versions and aliases come from the template."
                )
            return handler(call)
        except LambdaException as exc:
            return _error(exc)

    def too_large(self) -> HttpResponse:
        """The answer to a body that was not read to its end."""
        return _error(_too_large(MAX_EVENT_BYTES))

    def _operations(self) -> dict[str, Callable[[_Call], HttpResponse]]:
        return {
            "GET functions": self._list_functions,
            "GET functions/": self._get_function,
            "GET functions/configuration": self._get_function_configuration,
            "GET functions/versions": self._list_versions,
            "POST functions/versions": self._publish_version,
            "GET functions/aliases": self._list_aliases,
            "GET functions/aliases/": self._get_alias,
            "PUT functions/aliases/": self._update_alias,
            "GET functions/concurrency": self._get_concurrency,
            "PUT functions/concurrency": self._put_concurrency,
            "DELETE functions/concurrency": self._delete_concurrency,
            "GET functions/provisioned-concurrency": self._get_provisioned,
            "PUT functions/provisioned-concurrency": self._put_provisioned,
            "DELETE functions/provisioned-concurrency": self._delete_provisioned,
            "GET functions/event-invoke-config": self._get_event_invoke_config,
            "GET functions/event-invoke-config/": self._list_event_invoke_configs,
            "GET account-settings": self._account_settings,
        }

    def _call(self, request: HttpRequest) -> tuple[_Call, str]:
        """The call, and its operation: method, kind of resource, what of it."""
        query = dict(parse_qsl(request.query, keep_blank_values=True))
        _, _, kind, *parts = request.path.split("/")
        parts = [unquote(part) for part in parts if part]
        if kind != "functions" or not parts:
            return _Call(request, "", None, "", query), f"{request.method} {kind}"
        name, qualifier = self._function_name(parts[0], query.get("Qualifier"))
        what = parts[1] if len(parts) > 1 else ""
        rest = parts[2] if len(parts) > 2 else ""
        operation = f"{request.method} functions/{what}{'/' if rest else ''}"
        return _Call(request, name, qualifier, rest, query), operation

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
        region = self._service.get_function(match["name"]).region
        if match["region"] and match["region"] != region:
            raise ResourceNotFoundException(
                f"Functions from '{match['region']}' are not reachable in this region ('{region}')"
            )
        return match["name"], own or qualifier

    # Invocations.

    async def _invoke(self, call: _Call) -> HttpResponse:
        kind = call.header(b"x-amz-invocation-type") or "RequestResponse"
        event = call.request.body or b"{}"
        limit = MAX_ASYNC_EVENT_BYTES if kind == "Event" else MAX_EVENT_BYTES
        if len(event) > limit:
            raise _too_large(limit)
        _check_json(event)
        self._service.get_function(call.name, call.qualifier)
        if kind == "DryRun":
            return _answer(HTTPStatus.NO_CONTENT)
        if kind == "Event":
            self._asynchronous.send(call.name, call.qualifier, event)
            return _answer(HTTPStatus.ACCEPTED)
        if kind != "RequestResponse":
            raise InvalidParameterValueException(
                f"InvocationType is {kind!r}, expected RequestResponse, Event or DryRun."
            )
        invoked = await self._service.invoke(call.name, call.qualifier, event)
        if isinstance(invoked, Throttle):
            return _throttled(invoked)
        return _invoked(invoked, tail=call.header(b"x-amz-log-type") == "Tail")

    # Functions, versions and aliases.

    def _list_functions(self, call: _Call) -> HttpResponse:
        names = self._service.list_functions()
        if call.query.get("FunctionVersion") == "ALL":
            pairs = [(name, version) for name in names for version in self._service.list_versions(name)]
        else:
            pairs = [(name, LATEST) for name in names]
        page, marker = _page(pairs, call.query)
        configurations = [self._configuration(name, version, qualified=False) for name, version in page]
        return _answer(HTTPStatus.OK, {"Functions": configurations, "NextMarker": marker})

    def _get_function(self, call: _Call) -> HttpResponse:
        reserved = self._service.get_function_concurrency(call.name)
        answer: dict[str, Any] = {
            "Configuration": self._configuration(call.name, call.qualifier),
            "Code": {"RepositoryType": "ECR" if call.name in self._images else "S3"},
            "Tags": {},
        }
        if reserved is not None:
            answer["Concurrency"] = {"ReservedConcurrentExecutions": reserved}
        return _answer(HTTPStatus.OK, answer)

    def _get_function_configuration(self, call: _Call) -> HttpResponse:
        return _answer(HTTPStatus.OK, self._configuration(call.name, call.qualifier))

    def _list_versions(self, call: _Call) -> HttpResponse:
        page, marker = _page(self._service.list_versions(call.name), call.query)
        versions = [self._configuration(call.name, version) for version in page]
        return _answer(HTTPStatus.OK, {"Versions": versions, "NextMarker": marker})

    def _publish_version(self, call: _Call) -> HttpResponse:
        version = self._service.publish_version(call.name)
        return _answer(HTTPStatus.CREATED, self._configuration(call.name, version))

    def _list_aliases(self, call: _Call) -> HttpResponse:
        wanted = call.query.get("FunctionVersion")
        aliases = [
            self._alias(call.name, alias, version)
            for alias, version in self._service.list_aliases(call.name).items()
            if wanted in (None, version)
        ]
        page, marker = _page(aliases, call.query)
        return _answer(HTTPStatus.OK, {"Aliases": page, "NextMarker": marker})

    def _get_alias(self, call: _Call) -> HttpResponse:
        version = self._service.list_aliases(call.name).get(call.rest)
        if version is None:
            raise ResourceNotFoundException(f"Cannot find alias arn: {self._arn(call.name, call.rest)}")
        return _answer(HTTPStatus.OK, self._alias(call.name, call.rest, version))

    def _update_alias(self, call: _Call) -> HttpResponse:
        self._get_alias(call)  # it must be there
        asked = call.body()
        if asked.get("RoutingConfig") not in _NO_WEIGHTS:
            raise InvalidParameterValueException("Here an alias has one version. Leave RoutingConfig out.")
        if "FunctionVersion" not in asked:
            raise InvalidParameterValueException("The body has no FunctionVersion.")
        self._service.put_alias(call.name, call.rest, str(asked["FunctionVersion"]))
        return self._get_alias(call)

    # Concurrency.

    def _get_concurrency(self, call: _Call) -> HttpResponse:
        reserved = self._service.get_function_concurrency(call.name)
        return _answer(HTTPStatus.OK, {} if reserved is None else {"ReservedConcurrentExecutions": reserved})

    def _put_concurrency(self, call: _Call) -> HttpResponse:
        reserved = call.number("ReservedConcurrentExecutions")
        self._service.put_function_concurrency(call.name, reserved)
        return _answer(HTTPStatus.OK, {"ReservedConcurrentExecutions": reserved})

    def _delete_concurrency(self, call: _Call) -> HttpResponse:
        self._service.delete_function_concurrency(call.name)
        return _answer(HTTPStatus.NO_CONTENT)

    def _get_provisioned(self, call: _Call) -> HttpResponse:
        if call.query.get("List") == "ALL":
            return self._list_provisioned(call)
        config = self._service.get_provisioned_concurrency(call.name, call.needed_qualifier())
        return _answer(HTTPStatus.OK, _provisioned(config))

    def _put_provisioned(self, call: _Call) -> HttpResponse:
        requested = call.number("ProvisionedConcurrentExecutions")
        config = self._service.put_provisioned_concurrency(call.name, call.needed_qualifier(), requested)
        return _answer(HTTPStatus.ACCEPTED, _provisioned(config))

    def _delete_provisioned(self, call: _Call) -> HttpResponse:
        self._service.delete_provisioned_concurrency(call.name, call.needed_qualifier())
        return _answer(HTTPStatus.NO_CONTENT)

    def _list_provisioned(self, call: _Call) -> HttpResponse:
        page, marker = _page(self._service.list_provisioned_concurrency(call.name), call.query)
        configs = [
            {"FunctionArn": self._arn(call.name, config.qualifier), **_provisioned(config)} for config in page
        ]
        return _answer(HTTPStatus.OK, {"ProvisionedConcurrencyConfigs": configs, "NextMarker": marker})

    def _account_settings(self, call: _Call) -> HttpResponse:
        account = self._service.account_settings()
        return _answer(
            HTTPStatus.OK,
            {
                "AccountLimit": {
                    # https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html, read 2026-11.
                    "TotalCodeSize": 80_530_636_800,
                    "CodeSizeUnzipped": 262_144_000,
                    "CodeSizeZipped": 52_428_800,
                    "ConcurrentExecutions": account.concurrent_executions,
                    "UnreservedConcurrentExecutions": account.unreserved_concurrent_executions,
                },
                "AccountUsage": {"TotalCodeSize": 0, "FunctionCount": account.functions},
            },
        )

    # Asynchronous invocations.

    def _get_event_invoke_config(self, call: _Call) -> HttpResponse:
        qualifier = call.qualifier or LATEST
        config = self._service.list_event_invoke_configs(call.name).get(qualifier)
        if config is None:
            raise ResourceNotFoundException(
                f"The function {self._arn(call.name, qualifier)} doesn't have an EventInvokeConfig"
            )
        return _answer(HTTPStatus.OK, self._event_invoke_config(call.name, qualifier, config))

    def _list_event_invoke_configs(self, call: _Call) -> HttpResponse:
        page, marker = _page(list(self._service.list_event_invoke_configs(call.name).items()), call.query)
        configs = [self._event_invoke_config(call.name, qualifier, config) for qualifier, config in page]
        return _answer(HTTPStatus.OK, {"FunctionEventInvokeConfigs": configs, "NextMarker": marker})

    # Shapes.

    def _event_invoke_config(self, name: str, qualifier: str, config: EventInvokeConfig) -> dict[str, Any]:
        destinations = {"OnSuccess": config.on_success, "OnFailure": config.on_failure}
        return {
            "FunctionArn": self._arn(name, qualifier),
            "MaximumRetryAttempts": config.maximum_retry_attempts,
            "MaximumEventAgeInSeconds": int(config.maximum_age_s),
            "DestinationConfig": {
                kind: {"Destination": arn} if arn is not None else {} for kind, arn in destinations.items()
            },
        }

    def _arn(self, name: str, qualifier: str | None) -> str:
        return self._service.get_function(name).arn(qualifier)

    def _alias(self, name: str, alias: str, version: str) -> dict[str, str]:
        return {
            "AliasArn": self._arn(name, alias),
            "Name": alias,
            "FunctionVersion": version,
            "Description": "",
            "RevisionId": _revision(name, alias, version),
        }

    def _configuration(self, name: str, qualifier: str | None, *, qualified: bool = True) -> dict[str, Any]:
        """qualified: the ARN has the qualifier that was asked for."""
        function = self._service.get_function(name, qualifier)
        common = {
            "FunctionName": name,
            "FunctionArn": function.arn(qualifier if qualified or qualifier != LATEST else None),
            "CodeSize": 0,
            "Description": "",
            "Timeout": int(function.timeout_s),
            "MemorySize": function.memory_mb,
            "Version": function.version,
            "Environment": {"Variables": _own_variables(function)},
            "TracingConfig": {"Mode": "PassThrough"},
            "RevisionId": _revision(name, function.version),
            "State": "Active",
            "LastUpdateStatus": "Successful",
            "EphemeralStorage": {"Size": 512},
            "SnapStart": {"ApplyOn": "None", "OptimizationStatus": "Off"},
            "LoggingConfig": {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{name}"},
        }
        if name in self._images:
            command = {"ImageConfig": {"Command": [function.handler]}}
            return {**common, "PackageType": "Image", "ImageConfigResponse": command}
        runtime = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return {**common, "PackageType": "Zip", "Runtime": runtime, "Handler": function.handler}


def _own_variables(function: FunctionSettings) -> dict[str, str]:
    """Without those that only this machine needs."""
    return {
        name: value
        for name, value in function.environ.items()
        if not name.startswith("AWS_") and name not in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR")
    }


def _revision(*parts: str) -> str:
    """An id that stays as long as what it stands for."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))


def _page(items: Sequence[Item], query: Mapping[str, str]) -> tuple[Sequence[Item], str | None]:
    """One page of a list, and where the next one starts."""
    try:
        start, size = int(query.get("Marker") or 0), int(query.get("MaxItems") or 50)
    except ValueError as exc:
        raise InvalidParameterValueException("Marker or MaxItems is not a number.") from exc
    if start < 0 or size < 1:
        raise InvalidParameterValueException("Expected a Marker from 0 and MaxItems from 1.")
    end = start + size
    return items[start:end], str(end) if end < len(items) else None


def _check_json(event: bytes) -> None:
    try:
        msgspec.json.decode(event)
    except NOT_JSON as exc:
        raise InvalidRequestContentException(
            "Could not parse request body into json: the payload is not JSON. Send a JSON document."
        ) from exc


def _too_large(limit: int) -> RequestTooLargeException:
    return RequestTooLargeException(
        f"Request must be smaller than {limit} bytes for the InvokeFunction operation"
    )


def _invoked(invoked: Invoked, *, tail: bool) -> HttpResponse:
    headers = {"x-amz-executed-version": invoked.executed_version}
    if invoked.outcome.status is not InvocationStatus.SUCCESS:
        headers["x-amz-function-error"] = "Unhandled"
    if tail:
        headers["x-amz-log-result"] = base64.b64encode(invoked.log_tail).decode("ascii")
    return _response(HTTPStatus.OK, invoked.outcome.payload, headers, invoked.request_id)


def _throttled(throttle: Throttle) -> HttpResponse:
    body = {"Reason": throttle.reason, "Type": "User", "message": "Rate Exceeded."}
    headers = {"x-amzn-errortype": "TooManyRequestsException"}
    return _response(HTTPStatus.TOO_MANY_REQUESTS, msgspec.json.encode(body), headers)


def _provisioned(config: ProvisionedConcurrencyConfig) -> dict[str, Any]:
    answer = {
        "RequestedProvisionedConcurrentExecutions": config.requested,
        "AvailableProvisionedConcurrentExecutions": config.available,
        "AllocatedProvisionedConcurrentExecutions": config.allocated,
        "Status": config.status,
        "LastModified": config.last_modified,
    }
    return answer | ({"StatusReason": config.status_reason} if config.status_reason else {})


def _error(error: LambdaException) -> HttpResponse:
    name = "Message" if isinstance(error, _CAPITALISED) else "message"
    body = {"Type": "User", name: str(error)}
    return _response(error.status, msgspec.json.encode(body), {"x-amzn-errortype": type(error).__name__})


def _answer(status: HTTPStatus, body: Any = None) -> HttpResponse:
    return _response(status, b"" if body is None else msgspec.json.encode(body), {})


def _response(
    status: HTTPStatus, body: bytes, headers: Mapping[str, str], request_id: str | None = None
) -> HttpResponse:
    common = {"content-type": "application/json", "x-amzn-requestid": request_id or str(uuid.uuid4())}
    lines = [(name.encode("ascii"), value.encode("ascii")) for name, value in {**common, **headers}.items()]
    return HttpResponse(status, lines, body)
