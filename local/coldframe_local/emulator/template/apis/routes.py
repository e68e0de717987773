"""The routes of a template: events of functions, and what definitions of APIs write out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coldframe.capacity.limits import (
    HTTP_INTEGRATION,
    MIN_INTEGRATION,
    RAISED_REST_INTEGRATION,
    REST_INTEGRATION,
)
from coldframe_local.emulator.gateway.definitions import ANY, DEFAULT_ROUTE, ApiKind, PayloadFormat, Route
from coldframe_local.emulator.template.functions.functions import Function
from coldframe_local.emulator.template.syntax.errors import NotKnown, NotRunnable, TemplateError
from coldframe_local.emulator.template.syntax.properties import Properties
from coldframe_local.emulator.template.syntax.resources import Resources
from coldframe_local.emulator.template.syntax.template_warnings import Effect, Note
from coldframe_local.emulator.template.syntax.values import as_map, as_number, as_word

# What SAM calls the APIs that events without one share.
IMPLICIT = {ApiKind.HTTP: "ServerlessHttpApi", ApiKind.REST: "ServerlessRestApi"}

# How long each waits for an integration where nothing else is said, and the longest that it can be told to.
_DEFAULT_TIMEOUT_MS = {ApiKind.HTTP: HTTP_INTEGRATION.value, ApiKind.REST: REST_INTEGRATION.value}
_LONGEST_TIMEOUT_MS = {ApiKind.HTTP: HTTP_INTEGRATION.value, ApiKind.REST: RAISED_REST_INTEGRATION.value}

_EVENTS = {"HttpApi": ApiKind.HTTP, "Api": ApiKind.REST}
_API_PROPERTY = {ApiKind.HTTP: "ApiId", ApiKind.REST: "RestApiId"}
_METHODS = frozenset({"delete", "get", "head", "options", "patch", "post", "put"})
_TARGET = re.compile(
    r"arn:.*:lambda:path/[0-9-]+/functions/arn:.*:function:(?P<name>[^:/]+)(?::(?P<qualifier>[^:/]+))?/invocations"
)
_ANY_SPELLINGS = frozenset({"any", "x-amazon-apigateway-any-method", "*"})


@dataclass(frozen=True, slots=True)
class ApiSource:
    """Parts of a template that define APIs. functions: the functions that run."""

    resources: Resources
    functions: tuple[Function, ...]


@dataclass(frozen=True, slots=True)
class ApiEvent:
    """One event of a function, or one path and method of a definition: a route.

    settings: the route's own. authorizer: the name of what it asks; None: what its API asks.
    """

    kind: ApiKind
    api: str
    route: Route
    settings: Mapping[str, Any]
    authorizer: str | None


def read_routes(source: ApiSource, notes: list[Note]) -> Iterator[ApiEvent]:
    """Those of definitions, which go before events for the same route, then those of events.

    What cannot be served is left out, with a note. Raises TemplateError for what is wrong.
    """
    yield from _defined(source, notes)
    yield from _events(source, notes)


def definition(properties: Properties) -> Mapping[str, Any]:
    """`DefinitionBody` of an API, as it is written. Raises NotRunnable, TemplateError."""
    if "DefinitionUri" in properties:
        place = properties.place("DefinitionUri")
        raise NotRunnable(f"{place} is not read. Write the definition as DefinitionBody")
    where = properties.place("DefinitionBody")
    body = as_map(properties.written("DefinitionBody"), where)
    if "Fn::Transform" in body:
        raise NotRunnable(f"{where} is included by AWS. Write the definition in its place")
    return body


def _defined(source: ApiSource, notes: list[Note]) -> Iterator[ApiEvent]:
    """Routes that an API's `DefinitionBody` writes out, in OpenAPI with AWS's extensions.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-swagger-extensions.html
    """
    for api, properties in source.resources.of_types(*ApiKind):
        where = f"{api}.DefinitionBody.paths"
        try:
            paths = as_map(source.resources.resolve(definition(properties).get("paths"), where), where)
        except (NotRunnable, NotKnown) as exc:
            notes.append(Note(Effect.LEFT_OUT, f"routes of {api}", str(exc)))
            continue
        for path, methods in paths.items():
            for method, operation in as_map(methods, f"{where}.{path}").items():
                if str(method).lower() in _METHODS | _ANY_SPELLINGS:
                    place = f"{where}.{path}.{method}"
                    try:
                        yield _defined_route(source, api, place, str(path), method, as_map(operation, place))
                    except NotRunnable as exc:
                        notes.append(Note(Effect.LEFT_OUT, place, str(exc)))


def _defined_route(
    source: ApiSource, api: str, where: str, path: str, method: str, operation: Mapping[str, Any]
) -> ApiEvent:
    kind = ApiKind(source.resources.kind(api))
    integration = as_map(operation.get("x-amazon-apigateway-integration"), where)
    target = _TARGET.fullmatch(str(integration.get("uri")))
    if str(integration.get("type")).lower() != "aws_proxy" or target is None:
        raise NotRunnable(
            f"found an integration {integration.get('type')!r} with {integration.get('uri')!r}, "
            "expected aws_proxy and a function of this template: only those exist on this machine"
        )
    names = [function.settings.name for function in source.functions]
    if target["name"] not in names:
        raise NotRunnable(f"it calls the function {target['name']}, expected one of {', '.join(names)}")
    route = Route(
        method=_method(method),
        path=DEFAULT_ROUTE if path.removeprefix("/") == DEFAULT_ROUTE else path,
        function=target["name"],
        qualifier=target["qualifier"],
        payload=_payload(where, kind, integration.get("payloadFormatVersion")),
        timeout_s=_timeout_s(where, kind, integration.get("timeoutInMillis")),
    )
    return ApiEvent(kind, api, route, {}, "defined" if operation.get("security") else "NONE")


def _events(source: ApiSource, notes: list[Note]) -> Iterator[ApiEvent]:
    for function in source.functions:
        properties = source.resources.properties(function.logical_id)
        for name, event in properties.map("Events").maps():
            kind = _EVENTS.get(str(event.word("Type")))
            if kind is not None:
                where = f"{function.logical_id}.Events.{name}"
                try:
                    yield _event(source, function, where, kind, event.map("Properties"))
                except (NotRunnable, NotKnown) as exc:
                    notes.append(Note(Effect.LEFT_OUT, where, str(exc)))


def _event(
    source: ApiSource, function: Function, where: str, kind: ApiKind, properties: Properties
) -> ApiEvent:
    api = _api_of(source, where, kind, properties.written(_API_PROPERTY[kind]))
    path, method = properties.word("Path"), properties.word("Method")
    if kind is ApiKind.HTTP and path is None and method is None:
        path, method = DEFAULT_ROUTE, ANY
    if path is None or method is None:
        raise TemplateError(f"{where} has Path {path!r} and Method {method!r}, expected both.")
    if path != DEFAULT_ROUTE and not path.startswith("/"):
        raise TemplateError(f"{where}.Path is {path!r}, expected one that starts with a slash.")
    route = Route(
        method=_method(method),
        path=path,
        function=function.settings.name,
        qualifier=function.alias,
        payload=_payload(where, kind, properties.value("PayloadFormatVersion") or PayloadFormat.V2),
        timeout_s=_timeout_s(where, kind, properties.value("TimeoutInMillis")),
    )
    settings = as_map(properties.value("RouteSettings"), properties.place("RouteSettings"))
    # The authorization is not enforced, so what it refers to need not exist here.
    auth = as_map(properties.written("Auth"), properties.place("Auth"))
    authorizer = auth.get("Authorizer")
    return ApiEvent(kind, api, route, settings, None if authorizer is None else str(authorizer))


def _api_of(source: ApiSource, where: str, kind: ApiKind, reference: Any) -> str:
    if reference is None:
        return IMPLICIT[kind]
    name = reference.get("Ref") if isinstance(reference, dict) else reference
    expected = f"expected !Ref to an {kind} of this template"
    if not isinstance(name, str):
        raise NotRunnable(f"{_API_PROPERTY[kind]} is {reference!r}, {expected}: only those exist here")
    if name not in source.resources:
        raise TemplateError(f"{where}.{_API_PROPERTY[kind]} is {reference!r}, {expected}.")
    if source.resources.kind(name) != kind:
        actual = source.resources.kind(name)
        raise NotRunnable(f"{_API_PROPERTY[kind]} is the {actual} {name}, {expected}: only those exist here")
    return name


def _method(method: str) -> str:
    return ANY if method.lower() in _ANY_SPELLINGS else method.upper()


def _payload(where: str, kind: ApiKind, version: Any) -> PayloadFormat:
    if kind is ApiKind.REST:
        return PayloadFormat.V1
    try:
        return PayloadFormat(as_word(PayloadFormat.V1 if version is None else version, where))
    except ValueError:
        expected = 'expected "1.0" or "2.0"'
        raise TemplateError(f"{where} has the payload format version {version!r}, {expected}.") from None


def _timeout_s(where: str, kind: ApiKind, milliseconds: Any) -> float:
    if milliseconds is None:
        return _DEFAULT_TIMEOUT_MS[kind] / 1000
    timeout_ms, longest = as_number(milliseconds, f"{where}: the timeout"), _LONGEST_TIMEOUT_MS[kind]
    if not MIN_INTEGRATION.value <= timeout_ms <= longest:
        raise TemplateError(
            f"{where} waits {milliseconds} ms, expected {MIN_INTEGRATION.value} to {longest}."
        )
    return timeout_ms / 1000
