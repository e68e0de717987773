"""Which handler answers a method and a path: one table, patterns with `{names}`."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from coldframe.api.messages import Reply, Request
from coldframe.errors import MethodNotAllowed, NotFound

Handler = Callable[[Request], Reply]
Routes = Mapping[tuple[str, str], Handler]
"""Handlers by method and pattern, for instance `("GET", "/v2/models/{model}")`."""


class Match(Struct, frozen=True):
    """The handler of a request, and what its pattern's names stand for."""

    handler: Handler
    params: dict[str, str]


class Router:
    """Finds routes. A pattern's `{name}` stands for one segment of the path, and not for none."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._fixed = {path for _, path in routes if "{" not in path}
        # Hot routes have no names in their paths: one look finds their match.
        self._matches = {route: Match(routes[route], {}) for route in routes if route[1] in self._fixed}
        self._patterns = [
            (path, path.split("/")) for path in dict.fromkeys(path for _, path in routes) if "{" in path
        ]

    def pattern(self, path: str) -> str | None:
        """The pattern that `path` matches, or None. A path without names goes first."""
        if path in self._fixed:
            return path
        segments = path.split("/")
        for pattern, wanted in self._patterns:
            if len(wanted) == len(segments) and all(map(_fits, wanted, segments)):
                return pattern
        return None

    def knows(self, method: str, path: str) -> bool:
        """Whether `find` would return a match."""
        if (method, path) in self._matches:
            return True
        pattern = self.pattern(path)
        return pattern is not None and (method, pattern) in self._routes

    def find(self, method: str, path: str) -> Match:
        """The match of a request. Raises NotFound or MethodNotAllowed, which name what there is."""
        match = self._matches.get((method, path))
        if match is not None:
            return match
        pattern = self.pattern(path)
        if pattern is None and path == "/":
            raise NotFound("There is nothing at this path. See GET /docs, or GET /openapi.json.")
        if pattern is None:
            known = ", ".join(f"{method} {path}" for method, path in self._routes)
            raise NotFound(f"There is no such route. Routes: {known}; and GET /docs.")
        handler = self._routes.get((method, pattern))
        if handler is None:
            allowed = ", ".join(sorted(method for method, path in self._routes if path == pattern))
            raise MethodNotAllowed(f"This route takes {allowed}.", {"allow": allowed})
        return Match(handler, _params(pattern, path))


def _fits(wanted: str, segment: str) -> bool:
    return wanted == segment or (wanted.startswith("{") and segment != "")


def _params(pattern: str, path: str) -> dict[str, str]:
    if pattern == path:
        return {}
    pairs = zip(pattern.split("/"), path.split("/"), strict=True)
    return {wanted[1:-1]: segment for wanted, segment in pairs if wanted.startswith("{")}
