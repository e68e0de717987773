"""Routing by method and path: one table of patterns with `{names}`."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from coldframe.api.messages import Reply, Request
from coldframe.errors import MethodNotAllowed, NotFound

Handler = Callable[[Request], Reply]
Routes = Mapping[tuple[str, str], Handler]
"""Handlers by method and pattern, for instance `("GET", "/v2/models/{model}")`."""


class Match(Struct, frozen=True):
    """The handler of a request, and values for the names in its pattern."""

    handler: Handler
    params: dict[str, str]


class Router:
    """Finds routes. `{name}` in a pattern matches one segment of the path that is not empty."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._fixed = {path for _, path in routes if "{" not in path}
        self.hot = {route: Match(routes[route], {}) for route in routes if route[1] in self._fixed}
        """Matches of routes without names in their paths: one dictionary access finds them."""
        self._patterns = [
            (path, path.split("/")) for path in dict.fromkeys(path for _, path in routes) if "{" in path
        ]

    def pattern(self, path: str) -> str | None:
        """The pattern that `path` matches, or None. A path without names has priority."""
        if path in self._fixed:
            return path
        segments = path.split("/")
        for pattern, parts in self._patterns:
            if len(parts) == len(segments) and all(map(_fits, parts, segments)):
                return pattern
        return None

    def knows(self, method: str, path: str) -> bool:
        """Whether `find` would return a match."""
        pattern = self.pattern(path)
        return pattern is not None and (method, pattern) in self._routes

    def find(self, method: str, path: str) -> Match:
        """The match of a request. Raises NotFound or MethodNotAllowed, which list the routes or methods."""
        pattern = self.pattern(path)
        if pattern is None and path == "/":
            raise NotFound("There is nothing at this path. See GET /docs, or GET /openapi.json.")
        if pattern is None:
            routes = ", ".join(f"{method} {path}" for method, path in self._routes)
            raise NotFound(f"There is no such route. Use one of: {routes}; and GET /docs.")
        handler = self._routes.get((method, pattern))
        if handler is None:
            allowed = ", ".join(sorted(method for method, path in self._routes if path == pattern))
            raise MethodNotAllowed(f"This method is not allowed. Use {allowed}.", {"allow": allowed})
        return Match(handler, _params(pattern, path))


def _fits(part: str, segment: str) -> bool:
    return part == segment or (part.startswith("{") and segment != "")


def _params(pattern: str, path: str) -> dict[str, str]:
    if pattern == path:
        return {}
    pairs = zip(pattern.split("/"), path.split("/"), strict=True)
    return {part[1:-1]: segment for part, segment in pairs if part.startswith("{")}
