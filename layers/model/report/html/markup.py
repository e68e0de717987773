"""HTML and SVG as trees: whatever is put in is text, so that no label becomes markup."""

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, tostring

Child = Element | str | None


def node(tag: str, *children: Child, **attributes: object) -> Element:
    """An element. `class_` and `stroke_width` become `class` and `stroke-width`; None is left out."""
    element = Element(
        tag, {_name(name): str(value) for name, value in attributes.items() if value is not None}
    )
    for child in children:
        _append(element, child)
    return element


def table(headings: Sequence[str], rows: Iterable[Sequence[Child]], words: int = 1) -> Element:
    """A table that scrolls sideways when it has to. words: leading columns that are no numbers."""
    kinds = ["word" if place < words else "number" for place in range(len(headings))]
    head = [node("th", name, scope="col", class_=kind) for name, kind in zip(headings, kinds, strict=True)]
    body = [
        node("tr", *(node("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in rows
    ]
    element = node("table", node("thead", node("tr", *head)), node("tbody", *body))
    return node("div", element, class_="wide", tabindex=0, role="region", aria_label="table")


def to_html(root: Element) -> str:
    """The document as text."""
    return "<!doctype html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def _name(attribute: str) -> str:
    return attribute.rstrip("_").replace("_", "-")


def _append(parent: Element, child: Child) -> None:
    if isinstance(child, Element):
        parent.append(child)
    elif child and len(parent):
        parent[-1].tail = (parent[-1].tail or "") + child
    elif child:
        parent.text = (parent.text or "") + child
