"""Every table in the documents is made of the committed raw files, and the page needs nothing else."""

import re
from pathlib import Path

import pytest

from coldframe_bench.reporting.report import (
    PUBLISHED,
    NoResults,
    fill,
    markdown,
    raw_files,
    read_all,
    write_page,
)
from tests.conftest import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "docs" / "benchmarks.md"]
MARKED = re.compile(r"<!-- bench:(\w+) -->\n(.*?)<!-- /bench -->", re.DOTALL)


@pytest.fixture(scope="module")
def tables() -> dict[str, str]:
    """All tables, made of the committed raw files."""
    return markdown(read_all(raw_files(PUBLISHED)))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_quote_raw_files(document: Path, tables: dict[str, str]) -> None:
    """A table between marks is the one that the raw files make, to the last digit."""
    found = MARKED.findall(document.read_text())
    assert found
    for name, quoted in found:
        assert quoted == tables[name], f"{document.name}: run `coldframe bench report --docs`"


def test_every_benchmark_is_published(tables: dict[str, str]) -> None:
    """There is a committed raw file for each benchmark, and each has its table in docs/benchmarks.md."""
    marked = {name for name, _ in MARKED.findall(DOCUMENTS[1].read_text())}
    assert marked == set(tables) - {"summary"}  # the README has that one
    assert {"goals", "cold", "load", "compare", "encoder", "cost", "loadgen", "serve"} <= set(tables)


def test_published_runs_are_of_a_commit() -> None:
    """What is published was measured on committed code, and names machine, model and seed."""
    for results in read_all(raw_files(PUBLISHED)).values():
        assert not results.run.changed
        assert re.fullmatch("[0-9a-f]{40}", results.run.commit)
        assert results.run.cpu


def test_published_files_name_no_places() -> None:
    """No folder of the machine that measured is in a raw file."""
    for results in read_all(raw_files(PUBLISHED)).values():
        content = "".join(str(sample) for sample in [results.run, *results.samples])
        assert not re.search(r"/(tmp|home|root|work|Users)/", content), results.path.name


def test_page_stands_alone(tmp_path: Path, tables: dict[str, str]) -> None:
    """The page has every section, no script, and loads nothing from anywhere."""
    page = tmp_path / "report.html"
    write_page(read_all(raw_files(PUBLISHED)), page)
    content = page.read_text()
    assert content.count("<h2>") == 9
    assert not re.search(r"<(script|link|img)|https?:|@import|url\(", content)
    assert "<b>missed</b>" in content
    assert "Where a cold start goes: encoder" in content


def test_other_text_stays() -> None:
    """Only what is between the marks changes."""
    document = "before\n<!-- bench:cold -->\nold\n<!-- /bench -->\nafter\n"
    assert fill(document, {"cold": "| new |\n"}) == document.replace("old\n", "| new |\n")
    assert fill(document, {"load": "| new |\n"}) == document


def test_nothing_to_report() -> None:
    """Without raw files the report says what to run."""
    with pytest.raises(NoResults, match="make bench"):
        read_all([])
