"""The APIs of a template: SAM's HttpApi and Api resources with the routes that lead to its functions."""

from __future__ import annotations

from coldframe.capacity.limits import REST_INTEGRATION
from coldframe_local.emulator.gateway.definitions import DEFAULT_STAGE, Api, ApiKind
from coldframe_local.emulator.template.apis.cors import http_cors, rest_cors
from coldframe_local.emulator.template.apis.routes import ApiEvent, ApiSource, definition, read_routes
from coldframe_local.emulator.template.apis.throttling import http_throttling, rest_throttling
from coldframe_local.emulator.template.syntax.errors import NotKnown, NotRunnable
from coldframe_local.emulator.template.syntax.properties import Properties
from coldframe_local.emulator.template.syntax.template_warnings import Effect, Note
from coldframe_local.emulator.template.syntax.values import as_map

# The stage of the REST API that events without one share.
_IMPLICIT_REST_STAGE = "Prod"


def read_apis(source: ApiSource, notes: list[Note]) -> tuple[Api, ...]:
    """Every API that some function serves, in the order of the template, implicit ones last.

    notes: what is not served, or not as on AWS, is added. Raises TemplateError for what is wrong.
    """
    events: dict[tuple[ApiKind, str], list[ApiEvent]] = {}
    for event in read_routes(source, notes):
        group = events.setdefault((event.kind, event.api), [])
        if all(event.route.key != each.route.key for each in group):
            group.append(event)
    order = [name for name, _ in source.resources.kinds()]
    apis = []
    for kind, name in sorted(events, key=lambda key: order.index(key[1]) if key[1] in order else len(order)):
        try:
            apis.append(_api(source, kind, name, events[kind, name]))
        except (NotRunnable, NotKnown) as exc:
            notes.append(Note(Effect.LEFT_OUT, name, str(exc)))
    why = f"AWS has to raise the account's quota first, which is {REST_INTEGRATION}"
    notes += [
        Note(Effect.REFUSED, f"{api.name}, {route.key}, {route.timeout_s:g} s", why)
        for api in apis
        for route in api.routes
        if api.kind is ApiKind.REST and route.timeout_s * 1000 > REST_INTEGRATION.value
    ]
    why = "anybody is served: authorization is not enforced on this machine"
    notes += [Note(Effect.IGNORED, f"{api.name}.Auth", why) for api in apis if api.authorizer]
    return tuple(apis)


def _api(source: ApiSource, kind: ApiKind, name: str, events: list[ApiEvent]) -> Api:
    resources = source.resources
    properties = resources.properties(name) if name in resources else Properties({}, name, resources.resolve)
    is_http = kind is ApiKind.HTTP
    where = f"{name}.DefinitionBody.x-amazon-apigateway-cors"
    in_definition = resources.resolve(definition(properties).get("x-amazon-apigateway-cors"), where)
    routes = [(event.route, event.settings) for event in events]
    default, by_route = (http_throttling if is_http else rest_throttling)(properties, routes)
    return Api(
        name=name,
        kind=kind,
        routes=tuple(event.route for event in events),
        stage=properties.word("StageName") or (DEFAULT_STAGE if is_http else _IMPLICIT_REST_STAGE),
        cors=http_cors(properties, as_map(in_definition, where)) if is_http else rest_cors(properties),
        default_throttling=default,
        throttling=by_route,
        binary_media_types=tuple(
            str(media_type).replace("~1", "/") for media_type in properties.items("BinaryMediaTypes")
        ),
        authorizer=_asks_for_authorization(properties, events),
    )


def _asks_for_authorization(properties: Properties, events: list[ApiEvent]) -> bool:
    # It is not enforced, so what it refers to need not exist here.
    auth = as_map(properties.written("Auth"), properties.place("Auth"))
    default = auth.get("DefaultAuthorizer")
    return any((event.authorizer or default or "NONE") != "NONE" for event in events)
