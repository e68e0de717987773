"""The documentation as a site: pages from docs/ and the READMEs, built by Zensical, with every link checked.

Links out of docs/ lead to the same text on the site, or to a copy of the file. `make docs` runs it in an
environment of its own; it needs nothing but Zensical.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[3]
DOCS, BUILD = ROOT / "docs", ROOT / "build" / "docs"
PAGES, SITE = BUILD / "pages", BUILD / "site"

ELSEWHERE = {
    "README.md": "start.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "local/README.md": "local-api.md",
    "bench/README.md": "measuring.md",
}
"""Pages outside docs/, and their names on the site."""

_FENCE_OR_LINK = re.compile(
    r"^```.*?^```|(?P<text>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<to>[^)\s]+)\)", re.M | re.S
)


def copy_pages() -> None:
    """Writes every page to build/docs/pages, with links that hold there, and the settings beside them."""
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(DOCS, PAGES)
    (PAGES / "mkdocs.yml").rename(BUILD / "mkdocs.yml")
    sources = {f"docs/{page.relative_to(DOCS).as_posix()}": page.relative_to(DOCS).as_posix()
               for page in DOCS.rglob("*.md")} | ELSEWHERE  # fmt: skip
    for source, target in sources.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        (PAGES / target).write_text(with_links(text, source, target), encoding="utf-8")


def with_links(text: str, source: str, target: str) -> str:
    """The page's text with links that lead to where each file is on the site. Fenced code stays."""

    def replaced(match: re.Match[str]) -> str:
        if match["to"] is None or urlsplit(match["to"]).scheme or match["to"].startswith("#"):
            return match[0]
        path, hash_, anchor = match["to"].partition("#")
        place = _place(os.path.normpath(Path(source).parent / path))
        if place is None:  # a folder: its name is in the text
            return match["text"][1:-1]
        return f"{match['text']}({os.path.relpath(place, Path(target).parent)}{hash_}{anchor})"

    return _FENCE_OR_LINK.sub(replaced, text)


def _place(path: str) -> str | None:
    """Where a file of the repository is on the site; None for a folder."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return None
    copy = PAGES / "files" / f"{path}.txt"  # a browser shows it
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / path, copy)
    return copy.relative_to(PAGES).as_posix()


class Page(HTMLParser):
    """Names, links and loaded addresses of a page, and lists that stand there as plain text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.plain_lists = 0
        self._in_paragraph = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects what an element names, links to and loads."""
        values = {name: value or "" for name, value in attrs}
        self._in_paragraph = tag == "p" or self._in_paragraph
        self.names |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in {"canonical", "next", "prev"}:
            self.loaded.append(values.get("href", ""))
        elif "src" in values:
            self.loaded.append(values["src"])

    def handle_endtag(self, tag: str) -> None:
        """Ends a paragraph."""
        self._in_paragraph = self._in_paragraph and tag != "p"

    def handle_data(self, data: str) -> None:
        """Counts list items in a paragraph: a list needs an empty line before it."""
        self.plain_lists += self._in_paragraph and "\n- " in data


def faults(site: Path) -> Iterator[str]:
    """Links that lead nowhere, files that a page loads from elsewhere, and lists that are shown as text."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    for path, page in pages.items():
        name = path.relative_to(site)
        yield from (f"{name}: loads {url}" for url in page.loaded if urlsplit(url).netloc)
        if page.plain_lists:
            yield f"{name}: a list stands in a paragraph, for want of an empty line before it"
        for link in {*page.links, *page.loaded}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            to = to / "index.html" if to.is_dir() else to
            anchor = unquote(parts.fragment)
            if not to.exists():
                yield f"{name}: {link} is not on the site"
            elif anchor and to in pages and anchor not in pages[to].names:
                yield f"{name}: {link} has no such heading"


def main() -> None:
    """Builds the site, and fails on a warning or a broken link."""
    copy_pages()
    zensical = Path(sys.executable).with_name("zensical")
    # Zensical keeps its cache in `.cache` beside the settings, and the root has downloads there.
    built = subprocess.run([zensical, "build", "--strict"], cwd=BUILD, env={**os.environ, "NO_COLOR": "1"})
    if built.returncode:
        sys.exit("Zensical found the problems above. Correct the pages, and run `make docs` again.")
    if broken := [*faults(SITE)]:
        sys.exit("\n".join([*broken, f"{len(broken)} faults. Correct the pages, and run `make docs` again."]))
    print(f"{len([*SITE.rglob('*.html')])} pages: open {SITE / 'index.html'}")


if __name__ == "__main__":
    main()
