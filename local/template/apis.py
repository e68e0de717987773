"""The APIs of a template: SAM's HttpApi and Api resources with the events of its functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.gateway.definitions import (
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
from local.template.intrinsics import TemplateError
from local.template.values import as_list, as_map, as_number

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
# What is read of an API beside its definition and its authorization.
_READ = frozenset(
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
        paths = source.resolve(_definition(api, properties).get("paths"), where)
        for path, methods in as_map(paths, where).items():
            for method, operation in as_map(methods, f"{where}.{path}").items():
                if method.lower() in _METHODS | _ANY_SPELLINGS:
                    place = f"{where}.{path}.{method}"
                    described = as_map(operation, place)
                    yield _defined_route(source, ApiKind(kind), api, place, path, method, described)


def _defined_route(
    source: ApiSource, kind: ApiKind, api: str, where: str, path: str, method: str, operation: Properties
) -> _Event:
    integration = as_map(operation.get("x-amazon-apigateway-integration"), where)
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
        for name, event in as_map(properties.get("Events"), f"{function}.Events").items():
            where = f"{function}.Events.{name}"
            kind = _EVENTS.get(str(as_map(event, where).get("Type")))
            if kind is not None:
                yield _event(source, function, where, kind, as_map(event.get("Properties"), where))


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
    settings = source.resolve(properties.get("RouteSettings"), f"{where}.RouteSettings")
    authorizer = as_map(properties.get("Auth"), f"{where}.Auth").get("Authorizer")
    return _Event(kind, api, route, as_map(settings, f"{where}.RouteSettings"), authorizer)


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
    timeout_s = longest if milliseconds is None else as_number(milliseconds, f"{where}: the timeout") / 1000
    if not 0.05 <= timeout_s <= longest:
        raise TemplateError(f"{where} waits {milliseconds} ms, expected 50 to {longest * 1000:.0f}.")
    return timeout_s


def _api(source: ApiSource, kind: ApiKind, name: str, events: list[_Event]) -> Api:
    _, properties = source.resources.get(name, (kind, {}))
    # The authorization is not enforced, so what it refers to need not exist here.
    read = {key: value for key, value in properties.items() if key in _READ and value is not None}
    resolved = source.resolve(read, name)
    defined_cors = source.resolve(
        _definition(name, properties).get("x-amazon-apigateway-cors"), f"{name}.DefinitionBody"
    )
    default_stage = DEFAULT_STAGE if kind is ApiKind.HTTP else _IMPLICIT_REST_STAGE
    throttling = _http_throttling if kind is ApiKind.HTTP else _rest_throttling
    default, by_route = throttling(name, resolved, events)
    return Api(
        name=name,
        kind=kind,
        routes=tuple(event.route for event in events),
        stage=str(resolved.get("StageName") or default_stage),
        cors=_http_cors(name, resolved, defined_cors) if kind is ApiKind.HTTP else _rest_cors(name, resolved),
        default_throttling=default,
        throttling=by_route,
        binary_media_types=tuple(
            str(media_type).replace("~1", "/")
            for media_type in as_list(resolved.get("BinaryMediaTypes"), f"{name}.BinaryMediaTypes")
        ),
        authorizer=_asks_for_authorization(name, properties, events),
    )


def _definition(api: str, properties: Properties) -> Properties:
    return as_map(properties.get("DefinitionBody"), f"{api}.DefinitionBody")


def _asks_for_authorization(name: str, properties: Properties, events: list[_Event]) -> bool:
    default = as_map(properties.get("Auth"), f"{name}.Auth").get("DefaultAuthorizer")
    return any((event.authorizer or default or "NONE") != "NONE" for event in events)


# CORS.


def _http_cors(name: str, properties: Properties, defined: Any) -> Cors | None:
    """SAM's `CorsConfiguration` of an HTTP API, or what its definition says.

    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-property-httpapi-httpapicorsconfiguration.html
    """
    in_definition = {key[:1].upper() + key[1:]: value for key, value in as_map(defined, name).items()}
    configuration = properties.get("CorsConfiguration") or in_definition
    if not configuration:
        return None
    if configuration is True:
        return Cors(("*",))
    configuration = as_map(configuration, f"{name}.CorsConfiguration")
    cors = _cors(name, configuration, configuration.get("AllowOrigins"))
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
    configuration = as_map(configuration, f"{name}.Cors")
    return _cors(name, configuration, configuration.get("AllowOrigin") or "'*'")


def _cors(name: str, configuration: Properties, origins: Any) -> Cors:
    max_age = configuration.get("MaxAge")
    return Cors(
        allow_origins=_words(origins),
        allow_methods=_words(configuration.get("AllowMethods")),
        allow_headers=_words(configuration.get("AllowHeaders")),
        expose_headers=_words(configuration.get("ExposeHeaders")),
        max_age_s=None if max_age is None else int(as_number(str(max_age).strip("'"), f"{name}: MaxAge")),
        allow_credentials=bool(configuration.get("AllowCredentials")),
    )


def _words(value: Any) -> tuple[str, ...]:
    """A list, or `'GET,POST'` with its quotes."""
    items = value if isinstance(value, list) else str(value or "").strip("'").split(",")
    return tuple(text for item in items if (text := str(item).strip()))


# Throttling.


def _http_throttling(
    name: str, properties: Properties, events: list[_Event]
) -> tuple[Throttling | None, dict[str, Throttling]]:
    where = f"{name}.RouteSettings"
    own = as_map(properties.get("RouteSettings"), where)
    by_route: dict[str, Throttling] = {}
    for event in events:
        key = event.route.key
        # SAM's key of a route for any method is its path alone.
        settings = {**as_map(own.get(key) or own.get(event.route.path), where), **event.settings}
        if (throttling := _throttling(settings, f"{where}.{key}")) is not None:
            by_route[key] = throttling
    where = f"{name}.DefaultRouteSettings"
    return _throttling(as_map(properties.get("DefaultRouteSettings"), where), where), by_route


def _rest_throttling(
    name: str, properties: Properties, events: list[_Event]
) -> tuple[Throttling | None, dict[str, Throttling]]:
    """`MethodSettings`, whose resource path writes each slash as `/` or `~1`, and all of them as `/*`."""
    default: Throttling | None = None
    by_route: dict[str, Throttling] = {}
    where = f"{name}.MethodSettings"
    for settings in as_list(properties.get("MethodSettings"), where):
        throttling = _throttling(as_map(settings, where), where)
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


def _throttling(settings: Properties, where: str) -> Throttling | None:
    rate = settings.get("ThrottlingRateLimit")
    burst = settings.get("ThrottlingBurstLimit")
    if rate is None and burst is None:
        return None
    # Where only one is given, the other is the account's: 10,000 per second, bursts of 5,000.
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-throttling.html, read 2026-11.
    return Throttling(
        10_000.0 if rate is None else as_number(rate, f"{where}.ThrottlingRateLimit"),
        5_000 if burst is None else int(as_number(burst, f"{where}.ThrottlingBurstLimit")),
    )
