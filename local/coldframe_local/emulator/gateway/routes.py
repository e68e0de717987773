"""Choice of the route of an API for a request. Pure.

HTTP API: the most specific path wins (a literal over a variable over `{proxy+}`), then the
named method over `ANY`; `$default` takes what is left.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html (read 2026-11).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from urllib.parse import unquote

from coldframe_local.emulator.gateway.definitions import (
    ANY,
    DEFAULT_ROUTE,
    DEFAULT_STAGE,
    Api,
    ApiKind,
    Route,
)


@dataclass(frozen=True, slots=True)
class Match:
    """The route that a request takes. path: the request's without the stage, still encoded."""

    route: Route
    path: str
    path_parameters: dict[str, str] = field(default_factory=dict)


class _Kind(IntEnum):
    """Kinds of segments, the most specific first."""

    LITERAL = 0
    VARIABLE = 1
    GREEDY = 2


@dataclass(frozen=True, slots=True)
class _Pattern:
    route: Route
    segments: tuple[tuple[_Kind, str], ...]

    @property
    def rank(self) -> tuple[tuple[_Kind, ...], bool]:
        return tuple(kind for kind, _ in self.segments), self.route.method == ANY


class Router:
    """The routes of one API, the most specific first."""

    def __init__(self, api: Api) -> None:
        self._api = api
        patterns = [_pattern(route) for route in api.routes if route.path != DEFAULT_ROUTE]
        self._patterns = sorted(patterns, key=lambda pattern: pattern.rank)
        self._default = next((route for route in api.routes if route.path == DEFAULT_ROUTE), None)

    def without_stage(self, path: str) -> str | None:
        """The path inside the stage; None where the address names another one."""
        if self._api.kind is ApiKind.HTTP and self._api.stage == DEFAULT_STAGE:
            return path
        prefix = f"/{self._api.stage}"
        if path != prefix and not path.startswith(f"{prefix}/"):
            return None
        return path.removeprefix(prefix) or "/"

    def match(self, method: str, path: str) -> Match | None:
        """The route of a request. path: without the stage, percent-encoded."""
        segments = self._split(path)
        for pattern in self._patterns:
            if pattern.route.method in (method, ANY):
                parameters = _parameters(pattern, segments)
                if parameters is not None:
                    return Match(pattern.route, path, parameters)
        return Match(self._default, path) if self._default is not None else None

    def methods_of(self, path: str) -> tuple[str, ...]:
        """The methods that some route takes at this path."""
        segments = self._split(path)
        methods = {
            pattern.route.method for pattern in self._patterns if _parameters(pattern, segments) is not None
        }
        return tuple(sorted(methods))

    def _split(self, path: str) -> tuple[str, ...]:
        # To a REST API, /path and /path/ are one resource; to an HTTP API they are two.
        if self._api.kind is ApiKind.REST:
            path = path.rstrip("/") or "/"
        return tuple(path.split("/")[1:])


def _pattern(route: Route) -> _Pattern:
    return _Pattern(route, tuple(_segments(route.path)))


def _segments(path: str) -> Iterator[tuple[_Kind, str]]:
    for segment in path.split("/")[1:]:
        if not (segment.startswith("{") and segment.endswith("}")):
            yield _Kind.LITERAL, segment
        elif segment.endswith("+}"):
            yield _Kind.GREEDY, segment[1:-2]
        else:
            yield _Kind.VARIABLE, segment[1:-1]


def _parameters(pattern: _Pattern, segments: tuple[str, ...]) -> dict[str, str] | None:
    """The variables of the path, decoded; None when the path is another one."""
    greedy = bool(pattern.segments) and pattern.segments[-1][0] is _Kind.GREEDY
    if len(segments) != len(pattern.segments) and not (greedy and len(segments) > len(pattern.segments)):
        return None
    parameters: dict[str, str] = {}
    for index, (kind, name) in enumerate(pattern.segments):
        value = "/".join(segments[index:]) if kind is _Kind.GREEDY else segments[index]
        if kind is _Kind.LITERAL:
            if unquote(value) != name:
                return None
        elif not value:
            return None
        else:
            parameters[name] = unquote(value)
    return parameters
