"""Which route a request takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_local.emulator.gateway.definitions import Api, ApiKind, PayloadFormat, Route
from coldframe_local.emulator.gateway.routes import Router

# The example of AWS's documentation:
# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html (read 2026-11).
DOCUMENTED = ["GET /pets/dog/1", "GET /pets/dog/{id}", "GET /pets/{proxy+}", "ANY /{proxy+}", "$default"]


def router(*keys: str, kind: ApiKind = ApiKind.HTTP, stage: str = "$default") -> Router:
    return Router(Api("Api", kind, tuple(route(key) for key in keys), stage))


def route(key: str) -> Route:
    method, _, path = key.partition(" ")
    return Route(method if path else "ANY", path or key, "function", None, PayloadFormat.V2, 30.0)


@pytest.mark.parametrize(
    ("method", "path", "taken", "parameters"),
    [
        ("GET", "/pets/dog/1", "GET /pets/dog/1", {}),
        ("GET", "/pets/dog/2", "GET /pets/dog/{id}", {"id": "2"}),
        ("GET", "/pets/cat/1", "GET /pets/{proxy+}", {"proxy": "cat/1"}),
        ("POST", "/test/5", "ANY /{proxy+}", {"proxy": "test/5"}),
        ("POST", "/pets/dog/1", "ANY /{proxy+}", {"proxy": "pets/dog/1"}),
        ("GET", "/", "$default", {}),
    ],
)
def test_most_specific_route_wins(method: str, path: str, taken: str, parameters: dict[str, str]) -> None:
    """The routes of AWS's own example are chosen as its documentation says."""
    match = router(*DOCUMENTED).match(method, path)
    assert match is not None
    assert (match.route.key, match.path_parameters) == (taken, parameters)


@given(st.permutations(DOCUMENTED), st.sampled_from(["/pets/dog/1", "/pets/dog/2", "/pets", "/a/b/c", "/"]))
def test_order_in_the_template_does_not_matter(keys: list[str], path: str) -> None:
    """The same request takes the same route, in whatever order the routes are written."""
    here, there = router(*keys).match("GET", path), router(*DOCUMENTED).match("GET", path)
    assert here is not None
    assert there is not None
    assert here.route.key == there.route.key


def test_named_method_before_any() -> None:
    """Of two routes with one path the one that names the method wins."""
    both = router("ANY /pets", "POST /pets")
    taken = {method: match.route.key for method in ("GET", "POST") if (match := both.match(method, "/pets"))}
    assert taken == {"GET": "ANY /pets", "POST": "POST /pets"}


def test_no_route() -> None:
    """Without a fitting route, and without `$default`, there is no match."""
    few = router("GET /pets", "GET /pets/{id}")
    assert few.match("POST", "/pets") is None
    assert few.match("GET", "/") is None
    assert few.match("GET", "/pets/1/2") is None


def test_parameters_are_decoded() -> None:
    """A variable's value arrives decoded; an encoded slash does not split it."""
    match = router("GET /pets/{id}").match("GET", "/pets/a%2Fb%20%C3%A9")
    assert match is not None
    assert match.path_parameters == {"id": "a/b é"}


def test_trailing_slash() -> None:
    """/pets and /pets/ are one resource of a REST API, and two of an HTTP API."""
    assert router("GET /pets").match("GET", "/pets/") is None
    assert router("GET /pets", kind=ApiKind.REST).match("GET", "/pets/") is not None


def test_empty_variable_is_none() -> None:
    """A variable, greedy or not, needs at least one character."""
    assert router("GET /pets/{id}").match("GET", "/pets/") is None
    assert router("ANY /{proxy+}").match("GET", "/") is None


@pytest.mark.parametrize(
    ("kind", "stage", "path", "inside"),
    [
        (ApiKind.HTTP, "$default", "/pets", "/pets"),
        (ApiKind.HTTP, "prod", "/prod/pets", "/pets"),
        (ApiKind.HTTP, "prod", "/pets", None),
        (ApiKind.REST, "Prod", "/Prod/pets", "/pets"),
        (ApiKind.REST, "Prod", "/Prod", "/"),
        (ApiKind.REST, "Prod", "/Production/pets", None),
    ],
)
def test_stage_is_part_of_the_address(kind: ApiKind, stage: str, path: str, inside: str | None) -> None:
    """A named stage is the first segment of every address; `$default` is none."""
    assert router("$default", kind=kind, stage=stage).without_stage(path) == inside
