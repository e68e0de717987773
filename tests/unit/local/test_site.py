"""The documentation's site: which pages it has, and which faults end its build."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from coldframe_local.tools import site
from coldframe_local.tools.site import ELSEWHERE, faults, with_links
from tests.conftest import ROOT


class Settings(yaml.SafeLoader):
    """Settings of the site, without the Python function that names headings."""


Settings.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
SETTINGS = yaml.load((ROOT / "docs" / "mkdocs.yml").read_text(), Settings)  # noqa: S506


def pages_of(entries: list[Any]) -> list[str]:
    """Pages of a navigation, in its order."""
    pages: list[str] = []
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        pages += [value] if isinstance(value, str) else pages_of(value)
    return pages


def test_navigation_has_every_page() -> None:
    """Each page of docs/ and each README is in it once. Decisions are found by their own list."""
    own = [page.name for page in (ROOT / "docs").glob("*.md")]
    assert sorted(pages_of(SETTINGS["nav"])) == sorted([*own, *ELSEWHERE.values(), "decisions/README.md"])
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text()
    for page in (ROOT / "docs" / "decisions").glob("0*.md"):
        assert f"]({page.name})" in listed


def test_site_loads_nothing_from_elsewhere() -> None:
    """Fonts are the reader's own, and no statistics are sent."""
    assert SETTINGS["theme"]["font"] is False
    assert SETTINGS.keys().isdisjoint({"extra_javascript", "extra_css", "extra"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](../README.md#run-it)", "[a](start.md#run-it)"),
        ("[a](../local/README.md)", "[a](local-api.md)"),
        ("[a](deploy.md#parameters) [b](#here)", "[a](deploy.md#parameters) [b](#here)"),
        ("[a](https://example.com/docs/x.md)", "[a](https://example.com/docs/x.md)"),
        ("[the manifests](../functions/server/manifests)", "the manifests"),
        ("```sh\n[a](../README.md)\n```", "```sh\n[a](../README.md)\n```"),
    ],
)
def test_links_lead_to_the_same_text(text: str, expected: str) -> None:
    """Links out of docs/ lead to the page's place on the site; code stays as it is."""
    assert with_links(text, "docs/serve.md", "serve.md") == expected


def test_links_to_sources_lead_to_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not a page is copied, so that the site needs no repository."""
    monkeypatch.setattr(site, "PAGES", tmp_path)
    text = with_links(
        "[limits](../../local/coldframe_local/planner/scenarios/prices.toml)",
        "docs/decisions/a.md",
        "decisions/a.md",
    )
    assert text == "[limits](../files/local/coldframe_local/planner/scenarios/prices.toml.txt)"
    copy = tmp_path / "files/local/coldframe_local/planner/scenarios/prices.toml.txt"
    assert copy.read_bytes() == (ROOT / "local/coldframe_local/planner/scenarios/prices.toml").read_bytes()


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="b.html#there">b</a> <a href="https://example.com/">c</a> <img src="c.svg">', None),
        ('<a href="c.html">c</a>', "c.html is not on the site"),
        ('<a href="b.html#here">b</a>', "b.html#here has no such heading"),
        ('<a href="#here">b</a>', "#here has no such heading"),
        ('<img src="d.svg">', "d.svg is not on the site"),
        ('<script src="https://example.com/a.js"></script>', "loads https://example.com/a.js"),
        ('<link rel="stylesheet" href="https://example.com/a.css">', "loads https://example.com/a.css"),
        ("<p>Two:\n- one</p>", "a list stands in a paragraph"),
        ("<p>One.</p><pre>\n- one</pre>", None),
    ],
)
def test_faults_of_a_page(tmp_path: Path, body: str, fault: str | None) -> None:
    """A link without a target, a file from elsewhere and a list that is shown as text are faults."""
    (tmp_path / "a.html").write_text(body)
    (tmp_path / "b.html").write_text('<h2 id="there">There</h2>')
    (tmp_path / "c.svg").write_text("<svg/>")
    assert [*faults(tmp_path)] == (
        []
        if fault is None
        else [f"a.html: {fault}" + (", for want of an empty line before it" if "list" in fault else "")]
    )
