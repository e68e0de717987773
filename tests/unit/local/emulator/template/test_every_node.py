"""Whatever stands in a template in the wrong place: a template that loads, or an error that says so."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from coldframe_local.emulator.template.syntax import applications
from coldframe_local.emulator.template.syntax.documents import read_document
from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.ref_names import IDENTITIES
from coldframe_local.emulator.template.template import load_template

ROOT = Path(__file__).parents[5]
RUN = {*IDENTITIES, "AWS::Lambda::EventInvokeConfig", "AWS::Serverless::Application"} - {
    "AWS::CloudWatch::Alarm",
    "AWS::IAM::Role",
}
FIXTURES = [ROOT / "tests" / "fixtures" / name for name in ("many_apis.yaml", "many_resources.yaml")]
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
        is_of_interest = place[0] != "Resources" or len(place) <= 3 or place[1] in run
        if is_of_interest and place != ("Resources",):  # which `read_document` itself refuses
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


def wrong_in(
    path: Path, strangers: Iterator[tuple[tuple[Any, ...], Any]], monkeypatch: pytest.MonkeyPatch
) -> list[Any]:
    """Places, and what a template with something else there ended in that is not a TemplateError."""
    as_written, broken = cache(read_document), []
    for place, stranger in strangers:
        read = {path: with_stranger(as_written(path), place, stranger)}
        monkeypatch.setattr(
            applications, "read_document", lambda each, read=read: read.get(each) or as_written(each)
        )
        try:
            load_template(path)
        except TemplateError:
            continue
        except Exception as exc:
            broken.append((place, stranger, exc))
    return broken


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: type(stranger).__name__)
def test_every_node_may_be_wrong(path: Path, stranger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list, a map, a number, text or nothing in any place never ends in anything but a TemplateError."""
    wanted = ((place, stranger) for place in of_interest(read_document(path)))
    assert wrong_in(path, wanted, monkeypatch) == []


def test_every_node_of_the_own_template_may_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the project's template: each place has one of the five, in turn."""
    path = ROOT / "template.yaml"
    wanted = zip(of_interest(read_document(path)), cycle(STRANGERS), strict=False)
    assert wrong_in(path, wanted, monkeypatch) == []
