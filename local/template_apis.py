"""The APIs of a template: SAM's HttpApi and Api resources with the events of its functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.gateway_types import (
    ANY,
    DEFAULT_ROUTE,
    DEFAULT_STAGE,
    Api,
    ApiKind,
    Cors,
    PayloadFormat,
    Route,
    Throttling,
)
from local.intrinsics import TemplateError

Properties = Mapping[str, Any]

# What SAM calls the APIs that events without one share, and the stage of the second.
IMPLICIT = {ApiKind.HTTP: "ServerlessHttpApi", ApiKind.REST: "ServerlessRestApi"}
_IMPLICIT_REST_STAGE = "Prod"

# The longest that each waits for an integration, and its default.
# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html and
# https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-execution-service-limits-table.html,
# read 2026-11.
_TIMEOUT_S = {ApiKind.HTTP: 30.0, ApiKind.REST: 29.0}

_EVENTS = {"HttpApi": ApiKind.HTTP, "Api": ApiKind.REST}
_API_PROPERTY = {ApiKind.HTTP: "ApiId", ApiKind.REST: "RestApiId"}
_METHODS = frozenset({"delete", "get", "head", "options", "patch", "post", "put"})
_TARGET = re.compile(
    r"arn:.*:lambda:path/[0-9-]+/functions/arn:.*:function:(?P<name>[^:/]+)(?::(?P<qualifier>[^:/]+))?/invocations"
)
_ANY_SPELLINGS = frozenset({"any", "x-amazon-apigateway-any-method", "*"})


@dataclass(frozen=True, slots=True)
class ApiSource:
    """What of a template the APIs are made of.

    functions: properties by logical id. resources: type and properties of every resource.
    aliases: what the events of each function call. resolve: evaluates intrinsic functions.
    """

    functions: Mapping[str, Properties]
    function_names: Mapping[str, str]
    aliases: Mapping[str, str | None]
    resources: Mapping[str, tuple[str, Properties]]
    resolve: Callable[[Any, str], Any]


def read_apis(source: ApiSource) -> tuple[Api, ...]:
    """Every API that some function serves, in the order of the template, implicit ones last.

    Raises TemplateError for a route that cannot be served.
    """
    events: dict[tuple[ApiKind, str], list[_Event]] = {}
    for event in (*_defined(source), *_events(source)):
        known = events.setdefault((event.kind, event.api), [])
        # What an API's own definition says goes before an event for the same route.
        if all(event.route.key != each.route.key for each in known):
            known.append(event)
    order = list(source.resources)
    return tuple(
        _api(source, kind, name, events[kind, name])
        for kind, name in sorted(
            events, key=lambda key: order.index(key[1]) if key[1] in order else len(order)
        )
    )


@dataclass(frozen=True, slots=True)
class _Event:
    """One event of a function, or one path and method of a definition: a route."""

    kind: ApiKind
    api: str
    route: Route
    settings: Properties
    authorizer: str | None


def _defined(source: ApiSource) -> Iterator[_Event]:
    """Routes that an API's `DefinitionBody` writes out, in OpenAPI with AWS's extensions.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-swagger-extensions.html
    """
    for api, (kind, properties) in source.resources.items():
        if kind not in tuple(ApiKind):
            continue
        if "DefinitionUri" in properties:
            raise TemplateError(f"{api}.DefinitionUri is not read. Write the definition as DefinitionBody.")
        where = f"{api}.DefinitionBody.paths"
        paths = source.resolve((properties.get("DefinitionBody") or {}).get("paths"), where) or {}
        for path, methods in paths.items():
            for method, operation in methods.items():
                if method.lower() in _METHODS | _ANY_SPELLINGS:
                    place = f"{where}.{path}.{method}"
                    yield _defined_route(source, ApiKind(kind), api, place, path, method, operation)


def _defined_route(
    source: ApiSource, kind: ApiKind, api: str, where: str, path: str, method: str, operation: Properties
) -> _Event:
    integration = operation.get("x-amazon-apigateway-integration") or {}
    target = _TARGET.fullmatch(str(integration.get("uri")))
    if str(integration.get("type")).lower() != "aws_proxy" or target is None:
        raise TemplateError(
            f"{where}: found an integration {integration.get('type')!r} with {integration.get('uri')!r}, "
            "expected aws_proxy and a function of this template. Only those exist on this machine."
        )
    if target["name"] not in source.function_names.values():
        known = ", ".join(source.function_names.values())
        raise TemplateError(f"{where} calls the function {target['name']}, expected one of {known}.")
    route = Route(
        method=ANY if method.lower() in _ANY_SPELLINGS else method.upper(),
        path=DEFAULT_ROUTE if path.removeprefix("/") == DEFAULT_ROUTE else path,
        function=target["name"],
        qualifier=target["qualifier"],
        payload=_payload(where, kind, integration.get("payloadFormatVersion", PayloadFormat.V1)),
        timeout_s=_timeout_s(where, kind, integration.get("timeoutInMillis")),
    )
    return _Event(kind, api, route, {}, "defined" if operation.get("security") else "NONE")


def _events(source: ApiSource) -> Iterator[_Event]:
    for function, properties in source.functions.items():
        for name, event in (properties.get("Events") or {}).items():
            kind = _EVENTS.get(event.get("Type"))
            if kind is not None:
                yield _event(
                    source, function, f"{function}.Events.{name}", kind, event.get("Properties") or {}
                )


def _event(source: ApiSource, function: str, where: str, kind: ApiKind, properties: Properties) -> _Event:
    api = _api_of(source, where, kind, properties.get(_API_PROPERTY[kind]))
    path = source.resolve(properties.get("Path"), f"{where}.Path")
    method = source.resolve(properties.get("Method"), f"{where}.Method")
    if kind is ApiKind.HTTP and path is None and method is None:
        path, method = DEFAULT_ROUTE, ANY
    if not isinstance(path, str) or not isinstance(method, str):
        raise TemplateError(f"{where} has Path {path!r} and Method {method!r}, expected both.")
    if path != DEFAULT_ROUTE and not path.startswith("/"):
        raise TemplateError(f"{where}.Path is {path!r}, expected one that starts with a slash.")
    payload = source.resolve(properties.get("PayloadFormatVersion"), where) or PayloadFormat.V2
    timeout_ms = source.resolve(properties.get("TimeoutInMillis"), f"{where}.TimeoutInMillis")
    route = Route(
        method=ANY if method.lower() in _ANY_SPELLINGS else method.upper(),
        path=path,
        function=source.function_names[function],
        qualifier=source.aliases[function],
        payload=_payload(where, kind, payload),
        timeout_s=_timeout_s(where, kind, timeout_ms),
    )
    settings = source.resolve(properties.get("RouteSettings"), f"{where}.RouteSettings") or {}
    authorizer = (properties.get("Auth") or {}).get("Authorizer")
    return _Event(kind, api, route, settings, authorizer)


def _api_of(source: ApiSource, where: str, kind: ApiKind, reference: Any) -> str:
    if reference is None:
        return IMPLICIT[kind]
    name = reference.get("Ref") if isinstance(reference, dict) else reference
    if source.resources.get(str(name), ("", {}))[0] != kind:
        raise TemplateError(
            f"{where}.{_API_PROPERTY[kind]} is {reference!r}, expected !Ref to an {kind} of this template. "
            "Only those exist on this machine."
        )
    return str(name)


def _payload(where: str, kind: ApiKind, version: Any) -> PayloadFormat:
    if kind is ApiKind.REST:
        return PayloadFormat.V1
    if str(version) not in tuple(PayloadFormat):
        raise TemplateError(f'{where} has the payload format version {version!r}, expected "1.0" or "2.0".')
    return PayloadFormat(str(version))


def _timeout_s(where: str, kind: ApiKind, milliseconds: Any) -> float:
    longest = _TIMEOUT_S[kind]
    timeout_s = longest if milliseconds is None else float(milliseconds) / 1000
    if not 0.05 <= timeout_s <= longest:
        raise TemplateError(f"{where} waits {milliseconds} ms, expected 50 to {longest * 1000:.0f}.")
    return timeout_s


def _api(source: ApiSource, kind: ApiKind, name: str, events: list[_Event]) -> Api:
    # The authorization is not enforced, so what it refers to need not exist here.
    properties = {
        key: value
        for key, value in source.resources.get(name, (kind, {}))[1].items()
        if key in _READ_PROPERTIES and value is not None
    }
    definition = source.resources.get(name, (kind, {}))[1].get("DefinitionBody") or {}
    defined_cors = source.resolve(definition.get("x-amazon-apigateway-cors"), f"{name}.DefinitionBody")
    resolved = source.resolve(properties, name)
    default_stage = DEFAULT_STAGE if kind is ApiKind.HTTP else _IMPLICIT_REST_STAGE
    throttling = _http_throttling if kind is ApiKind.HTTP else _rest_throttling
    default, by_route = throttling(resolved, events)
    return Api(
        name=name,
        kind=kind,
        routes=tuple(event.route for event in events),
        stage=str(resolved.get("StageName") or default_stage),
        cors=_http_cors(name, resolved, defined_cors) if kind is ApiKind.HTTP else _rest_cors(name, resolved),
        default_throttling=default,
        throttling=by_route,
        binary_media_types=tuple(
            str(media_type).replace("~1", "/") for media_type in resolved.get("BinaryMediaTypes", [])
        ),
        authorizer=_asks_for_authorization(source.resources.get(name, (kind, {}))[1], events),
    )


_READ_PROPERTIES = frozenset(
    {
        "StageName",
        "CorsConfiguration",
        "Cors",
        "DefaultRouteSettings",
        "RouteSettings",
        "MethodSettings",
        "BinaryMediaTypes",
    }
)


def _asks_for_authorization(properties: Properties, events: list[_Event]) -> bool:
    default = (properties.get("Auth") or {}).get("DefaultAuthorizer")
    return any((event.authorizer or default or "NONE") != "NONE" for event in events)


# CORS.


def _http_cors(name: str, properties: Properties, defined: Any) -> Cors | None:
    """SAM's `CorsConfiguration` of an HTTP API, or what its definition says.

    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-property-httpapi-httpapicorsconfiguration.html
    """
    in_definition = {key[0].upper() + key[1:]: value for key, value in (defined or {}).items()}
    configuration = properties.get("CorsConfiguration") or in_definition
    if not configuration:
        return None
    if configuration is True:
        return Cors(("*",))
    cors = _cors(name, configuration, configuration.get("AllowOrigins"), "ExposeHeaders")
    if cors.allow_credentials and "*" in cors.allow_origins:
        raise TemplateError(f'{name}: AllowCredentials needs named AllowOrigins, found "*".')
    return cors


def _rest_cors(name: str, properties: Properties) -> Cors | None:
    """SAM's `Cors` of a REST API, whose texts are quoted twice.

    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-property-api-corsconfiguration.html
    """
    configuration = properties.get("Cors")
    if not configuration:
        return None
    if isinstance(configuration, str):
        configuration = {"AllowOrigin": configuration}
    return _cors(name, configuration, configuration.get("AllowOrigin") or "'*'")


def _cors(name: str, configuration: Any, origins: Any, *more: str) -> Cors:
    if not isinstance(configuration, dict):
        raise TemplateError(
            f"{name}: CORS is {configuration!r}, expected a map of AllowOrigins and the like."
        )
    max_age = configuration.get("MaxAge")
    return Cors(
        allow_origins=_words(origins),
        allow_methods=_words(configuration.get("AllowMethods")),
        allow_headers=_words(configuration.get("AllowHeaders")),
        expose_headers=_words(configuration.get("ExposeHeaders")) if more else (),
        max_age_s=None if max_age is None else int(str(max_age).strip("'")),
        allow_credentials=bool(configuration.get("AllowCredentials")),
    )


def _words(value: Any) -> tuple[str, ...]:
    """A list, or `'GET,POST'` with its quotes."""
    items = value if isinstance(value, list) else str(value or "").strip("'").split(",")
    return tuple(text for item in items if (text := str(item).strip()))


# Throttling.


def _http_throttling(
    properties: Properties, events: list[_Event]
) -> tuple[Throttling | None, dict[str, Throttling]]:
    own = properties.get("RouteSettings") or {}
    by_route: dict[str, Throttling] = {}
    for event in events:
        key = event.route.key
        # SAM's key of a route for any method is its path alone.
        settings = {**(own.get(key) or own.get(event.route.path) or {}), **event.settings}
        if (throttling := _throttling(settings)) is not None:
            by_route[key] = throttling
    return _throttling(properties.get("DefaultRouteSettings") or {}), by_route


def _rest_throttling(
    properties: Properties, events: list[_Event]
) -> tuple[Throttling | None, dict[str, Throttling]]:
    """`MethodSettings`, whose resource path writes each slash as `/` or `~1`, and all of them as `/*`."""
    default: Throttling | None = None
    by_route: dict[str, Throttling] = {}
    for settings in properties.get("MethodSettings") or []:
        throttling = _throttling(settings)
        if throttling is None:
            continue
        path = str(settings.get("ResourcePath", "/*")).replace("~1", "/")
        path = f"/{path.lstrip('/')}"
        method = str(settings.get("HttpMethod", "*")).upper()
        if path == "/*" and method == "*":
            default = throttling
        for event in events:
            route = event.route
            if path in ("/*", route.path) and method in ("*", route.method) and (path, method) != ("/*", "*"):
                by_route[route.key] = throttling
    return default, by_route


def _throttling(settings: Properties) -> Throttling | None:
    rate = settings.get("ThrottlingRateLimit")
    burst = settings.get("ThrottlingBurstLimit")
    if rate is None and burst is None:
        return None
    # Where only one is given, the other is the account's: 10,000 per second, bursts of 5,000.
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-throttling.html, read 2026-11.
    return Throttling(10_000.0 if rate is None else float(rate), 5_000 if burst is None else int(burst))
