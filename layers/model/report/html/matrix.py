"""The confusion matrix as a drawing."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from layers.model.report.html.axes import drawing
from layers.model.report.html.markup import node

MOST_CLASSES = 30
_LETTERS = 22
_LETTER = 6.6  # width of one, on average
_STRONG = 0.55  # a cell of this opacity needs the ground's colour on it


def plot_matrix(matrix: NDArray[np.int64], labels: Sequence[str]) -> Element:
    """Rows are the true classes, columns are the answers; a cell is as dark as its share of its row."""
    size = max(22, min(46, 620 // len(labels)))
    margin = round(30 + _LETTER * min(_LETTERS, max(map(len, labels))))
    side = size * len(labels)
    support = matrix.sum(axis=1)
    marks: list[Element] = []
    for place, label in enumerate(labels):
        middle = margin + (place + 0.5) * size
        marks += _names(label, middle, margin, side)
    for (row, column), count in np.ndenumerate(matrix):
        share = count / support[row] if support[row] else 0.0
        about = f"{labels[row]} taken for {labels[column]}: {count:,} of {support[row]:,}"
        marks += _cell(
            margin + column * size, margin + row * size, size, share, row == column, int(count), about
        )
    return drawing(margin + side + 4, margin + side + 4, "Confusion matrix", *marks)


def short(label: str) -> str:
    """A label that fits beside a drawing."""
    return label if len(label) <= _LETTERS else label[: _LETTERS - 1] + "…"


def _names(label: str, middle: float, margin: int, side: int) -> list[Element]:
    turned = f"rotate(-60 {middle} {margin - 8})"
    return [
        node("text", short(label), node("title", label), x=margin - 8, y=middle + 4, class_="tick end"),
        node(
            "text",
            short(label),
            node("title", label),
            x=middle,
            y=margin - 8,
            transform=turned,
            class_="tick",
        ),
    ]


def _cell(
    x: float, y: float, size: int, share: float, is_right: bool, count: int, about: str
) -> list[Element]:
    opacity = round(share**0.5, 3)  # a rare mistake is still seen
    kind = "right" if is_right else "wrong"
    tile = node("title", about) if count else None
    ground = node("rect", x=x + 0.5, y=y + 0.5, width=size - 1, height=size - 1, class_="empty")
    if not count:
        return [ground]
    colour = node(
        "rect", tile, x=x + 0.5, y=y + 0.5, width=size - 1, height=size - 1, fill_opacity=opacity, class_=kind
    )
    on = "count on" if opacity > _STRONG else "count"
    number = f"{count:,}" if count < 10_000 else f"{count // 1000}k"
    return [ground, colour, node("text", number, x=x + size / 2, y=y + size / 2 + 4, class_=on)]
