"""Paths with names in them to handlers."""

import pytest

from coldframe.api.messages import Reply, Request
from coldframe.api.routing import Router
from coldframe.errors import MethodNotAllowed, NotFound


def reply(request: Request) -> Reply:
    return Reply(200, b"", {})


def other(request: Request) -> Reply:
    return Reply(201, b"", {})


ROUTES = {
    ("GET", "/"): reply,
    ("GET", "/models"): reply,
    ("POST", "/models"): other,
    ("GET", "/models/all"): other,
    ("GET", "/models/{model}"): reply,
    ("POST", "/models/{model}/versions/{version}/infer"): other,
}


def test_fixed_path() -> None:
    """A path without names is found by method, and gives no parameters."""
    match = Router(ROUTES).find("POST", "/models")
    assert (match.handler, match.params) == (other, {})


def test_names_stand_for_segments() -> None:
    """Each name is one segment of the path, as it was sent."""
    match = Router(ROUTES).find("POST", "/models/m-1/versions/sha256:ab/infer")
    assert match.handler is other
    assert match.params == {"model": "m-1", "version": "sha256:ab"}


def test_fixed_path_goes_first() -> None:
    """A path that is listed as it stands is not taken for a pattern's."""
    assert Router(ROUTES).find("GET", "/models/all").handler is other
    assert Router(ROUTES).find("GET", "/models/any").handler is reply


@pytest.mark.parametrize(
    "path", ["", "/models/", "/models//versions/1/infer", "/models/a/b", "models/a", "//"]
)
def test_no_such_route(path: str) -> None:
    """A name never stands for nothing or for two segments; the error lists the routes."""
    with pytest.raises(NotFound, match=r"GET /models/\{model\}"):
        Router(ROUTES).find("GET", path)
    assert not Router(ROUTES).knows("GET", path)


def test_wrong_method() -> None:
    """A known path with another method names the right ones."""
    router = Router(ROUTES)
    with pytest.raises(MethodNotAllowed, match=r"Use GET, POST\.") as caught:
        router.find("PUT", "/models")
    assert caught.value.headers == {"allow": "GET, POST"}
    assert not router.knows("PUT", "/models")
    assert router.pattern("/models/x") == "/models/{model}"
