"""The frame of a plot: two scales, their grid, and marks at places that data name."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from layers.model.report.html.markup import Child, node

Point = tuple[float, float]


@dataclass(frozen=True)
class Axes:
    """Data from `x` and `y` (low, high) on a drawing of width × height units."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int = 720
    height: int = 400
    left: int = 56
    right: int = 18
    top: int = 16
    bottom: int = 50

    def place(self, x: float, y: float) -> Point:
        """Where on the drawing a point of the data is."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return (
            round(self.left + across * (self.width - self.left - self.right), 2),
            round(self.height - self.bottom - up * (self.height - self.top - self.bottom), 2),
        )

    def line(self, start: Point, end: Point, kind: str) -> Element:
        """A straight line between two points of the data."""
        (x1, y1), (x2, y2) = self.place(*start), self.place(*end)
        return node("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)

    def path(self, points: Sequence[Point], kind: str) -> Element:
        """A line through points of the data."""
        return node("polyline", points=self._list(points), class_=kind)

    def area(self, lower: Sequence[Point], upper: Sequence[Point], kind: str) -> Element:
        """Area between two lines."""
        return node("polygon", points=self._list([*lower, *reversed(upper)]), class_=kind)

    def dot(self, x: float, y: float, kind: str, about: str, radius: float = 4.5) -> Element:
        """A mark; `about` is shown while the pointer rests on it."""
        cx, cy = self.place(x, y)
        return node("circle", node("title", about), cx=cx, cy=cy, r=radius, class_=kind)

    def text(self, x: float, y: float, words: str, kind: str, dx: float = 0, dy: float = 0) -> Element:
        """Words at a point of the data, moved by units of the drawing."""
        across, down = self.place(x, y)
        return node("text", words, x=round(across + dx, 2), y=round(down + dy, 2), class_=kind)

    def grid_x(self, name: str) -> list[Element]:
        """Vertical lines, their percentages, and what the axis shows."""
        low = self.y[0]
        middle = (self.left + self.width - self.right) / 2
        lines = [self.line((tick, low), (tick, self.y[1]), "grid") for tick in ticks(*self.x)]
        lines += [self.text(tick, low, _percent(tick), "tick middle", dy=18) for tick in ticks(*self.x)]
        return [*lines, node("text", name, x=middle, y=self.height - 8, class_="axis middle")]

    def grid_y(self, name: str) -> list[Element]:
        """Horizontal lines, their percentages, and what the axis shows."""
        low = self.x[0]
        middle = (self.top + self.height - self.bottom) / 2
        turned = f"rotate(-90 14 {middle})"
        lines = [self.line((low, tick), (self.x[1], tick), "grid") for tick in ticks(*self.y)]
        lines += [self.text(low, tick, _percent(tick), "tick end", dx=-8, dy=4) for tick in ticks(*self.y)]
        return [*lines, node("text", name, x=14, y=middle, transform=turned, class_="axis middle")]

    def drawing(self, about: str, *marks: Child) -> Element:
        """The plot. about: what it shows, for those who cannot see it."""
        return drawing(self.width, self.height, about, *marks)

    def _list(self, points: Sequence[Point]) -> str:
        return " ".join("{},{}".format(*self.place(*point)) for point in points)


def drawing(width: float, height: float, about: str, *marks: Child) -> Element:
    """A drawing that grows with the page up to a fifth more than its size, and scrolls on a small one."""
    limit = f"max-inline-size: {round(width * 1.2)}px"
    svg = node("svg", *marks, viewBox=f"0 0 {width} {height}", role="img", aria_label=about, style=limit)
    return node("div", svg, class_="wide", tabindex=0, role="region", aria_label=about)


def ticks(low: float, high: float) -> list[float]:
    """Round values from low to high, at most eight."""
    steps = (0.01, 0.02, 0.05, 0.1, 0.2)
    step = next((step for step in steps if (high - low) / step <= 7), 0.25)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 4) for place in range(first, last + 1)]


def _percent(share: float) -> str:
    return f"{share:.0%}"
