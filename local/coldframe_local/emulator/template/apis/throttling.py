"""Throttling of an API and of its routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from coldframe.capacity.limits import API_BURST, API_RATE
from coldframe_local.emulator.gateway.definitions import Route, Throttling
from coldframe_local.emulator.template.syntax.properties import Properties
from coldframe_local.emulator.template.syntax.values import as_map, as_number

# Of the API, and by the key of a route.
Throttles = tuple[Throttling | None, dict[str, Throttling]]


def http_throttling(properties: Properties, routes: Iterable[tuple[Route, Mapping[str, Any]]]) -> Throttles:
    """`DefaultRouteSettings` and `RouteSettings`; routes: each with the settings of its event.

    Raises TemplateError, as does `rest_throttling`.
    """
    where = properties.place("RouteSettings")
    own = as_map(properties.value("RouteSettings"), where)
    by_route: dict[str, Throttling] = {}
    for route, of_event in routes:
        # SAM's key of a route for any method is its path alone.
        of_api = as_map(own.get(route.key) or own.get(route.path), f"{where}.{route.key}")
        if (throttling := _throttling({**of_api, **of_event}, f"{where}.{route.key}")) is not None:
            by_route[route.key] = throttling
    where = properties.place("DefaultRouteSettings")
    return _throttling(as_map(properties.value("DefaultRouteSettings"), where), where), by_route


def rest_throttling(properties: Properties, routes: Iterable[tuple[Route, Mapping[str, Any]]]) -> Throttles:
    """`MethodSettings`, whose resource path writes each slash as `/` or `~1`, and all of them as `/*`."""
    default: Throttling | None = None
    by_route: dict[str, Throttling] = {}
    every_route = [route for route, _ in routes]
    where = properties.place("MethodSettings")
    for settings in properties.items("MethodSettings"):
        throttling = _throttling(as_map(settings, where), where)
        if throttling is None:
            continue
        path = str(settings.get("ResourcePath", "/*")).replace("~1", "/")
        path = f"/{path.lstrip('/')}"
        method = str(settings.get("HttpMethod", "*")).upper()
        if path == "/*" and method == "*":
            default = throttling
            continue
        for route in every_route:
            if path in ("/*", route.path) and method in ("*", route.method):
                by_route[route.key] = throttling
    return default, by_route


def _throttling(settings: Mapping[str, Any], where: str) -> Throttling | None:
    rate = settings.get("ThrottlingRateLimit")
    burst = settings.get("ThrottlingBurstLimit")
    if rate is None and burst is None:
        return None
    # Where only one is given, the other is the account's.
    return Throttling(
        float(API_RATE.value) if rate is None else as_number(rate, f"{where}.ThrottlingRateLimit"),
        API_BURST.value if burst is None else int(as_number(burst, f"{where}.ThrottlingBurstLimit")),
    )
