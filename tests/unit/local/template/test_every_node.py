"""Whatever stands in a template in the wrong place: a template that loads, or an error that says so."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from local.template import applications
from local.template.documents import read_document
from local.template.errors import TemplateError
from local.template.identities import IDENTITIES
from local.template.template import load_template

ROOT = Path(__file__).parents[4]
RUN = {*IDENTITIES, "AWS::Lambda::EventInvokeConfig"} - {"AWS::CloudWatch::Alarm", "AWS::IAM::Role"}
FIXTURES = ROOT / "tests" / "fixtures"
TEMPLATES = (ROOT / "template.yaml", FIXTURES / "many_apis.yaml", FIXTURES / "many_resources.yaml")
STRANGERS: tuple[Any, ...] = ([1], {"a": 1}, 7, "text", None)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every node below a value."""
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def of_interest(document: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """All nodes, but what is inside the properties of resources that the emulator does not run."""
    run = {name for name, resource in document["Resources"].items() if kind_of(resource) in RUN}
    for place in places(document):
        if place[0] != "Resources" or len(place) <= 3 or place[1] in run:
            yield place


def kind_of(resource: Any) -> Any:
    return resource.get("Type") if isinstance(resource, dict) else None


def with_stranger(document: dict[str, Any], place: tuple[Any, ...], stranger: Any) -> dict[str, Any]:
    """A copy with something else in one place."""
    changed = dict(document)
    inner: Any = changed
    for key in place[:-1]:
        inner[key] = copy.copy(inner[key])
        inner = inner[key]
    inner[place[-1]] = stranger
    return changed


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: type(stranger).__name__)
def test_every_node_may_be_wrong(path: Path, stranger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list, a map, a number, text or nothing in any place never ends in anything but a TemplateError."""
    read = cache(read_document)
    document = read(path)
    for place in of_interest(document):
        changed = with_stranger(document, place, stranger)
        # The templates of nested applications are read as they are.
        monkeypatch.setattr(
            applications,
            "read_document",
            lambda each, changed=changed: changed if each == path else read(each),
        )
        try:
            load_template(path)
        except TemplateError as exc:
            assert str(exc)
        except Exception as exc:
            pytest.fail(f"{place} = {stranger!r}: {exc!r}")
