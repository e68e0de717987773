"""The plots of a report: lines and marks."""

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from layers.model.report.figures.calibration import Reliability
from layers.model.report.figures.coverage import Coverage, CoveragePoint
from layers.model.report.figures.intervals import Interval
from layers.model.report.html.axes import Axes, Point
from layers.model.report.html.markup import node

_FEWEST_OF_BIN = 10  # a line through bins of fewer rows shows noise
_FEWEST = 20  # answers; the accuracy of fewer jumps about
_ROW = 30
_NAME = 200  # width that names of a dot plot take


class Dot(NamedTuple):
    """A row of a dot plot. kind: the class of its mark."""

    name: str
    found: Interval
    kind: str = "other"


def plot_coverage(model: Coverage, baseline: Coverage | None) -> Element:
    """Accuracy of the answers that remain, as more and more are given up."""
    curves = [_steady(coverage.curve) for coverage in (model, baseline) if coverage]
    lowest = min(low for curve in curves for _, (low, _) in _band(curve))
    axes = Axes(x=(0, 1), y=(max(0.0, math.floor(lowest * 20) / 20), 1))
    band = _band(curves[0])
    marks = [
        *axes.grid_x("share of the rows that are answered"),
        *axes.grid_y("accuracy of these answers"),
        axes.area([(x, low) for x, (low, _) in band], [(x, high) for x, (_, high) in band], "band"),
        *(axes.path(_line(curve), "line baseline") for curve in curves[1:]),
        axes.path(_line(curves[0]), "line auto"),
    ]
    if model.chosen and model.chosen.accuracy:
        marks += _chosen(axes, model.chosen, model.chosen.accuracy.value)
    return axes.drawing("Accuracy against the share of the rows that are answered", *marks)


def _chosen(axes: Axes, point: CoveragePoint, accuracy: float) -> list[Element]:
    about = f"min_probability {point.min_probability:g}: {point.coverage:.1%} answered, {accuracy:.1%} right"
    end = point.coverage > 0.6
    label = f"min_probability {point.min_probability:g}"
    kind, dx = ("label end", -10) if end else ("label", 10)
    return [
        axes.line((point.coverage, axes.y[0]), (point.coverage, accuracy), "guide"),
        axes.dot(point.coverage, accuracy, "chosen", about, radius=6),
        axes.text(point.coverage, axes.y[0], label, kind, dx=dx, dy=-10),
    ]


def _steady(curve: Sequence[CoveragePoint]) -> list[CoveragePoint]:
    return [point for point in curve if point.answered >= _FEWEST] or list(curve[-1:])


def _line(curve: Sequence[CoveragePoint]) -> list[Point]:
    return [(point.coverage, point.accuracy.value) for point in curve if point.accuracy]


def _band(curve: Sequence[CoveragePoint]) -> list[tuple[float, Point]]:
    return [(point.coverage, (point.accuracy.low, point.accuracy.high)) for point in curve if point.accuracy]


def plot_reliability(after: Reliability, before: Reliability | None) -> Element:
    """Accuracy against probability, bin by bin; below, how many answers each bin has."""
    axes = Axes(x=(0, 1), y=(0, 1), height=430, bottom=110)
    marks = [
        *axes.grid_x("probability of the answer"),
        *axes.grid_y("accuracy"),
        axes.line((0, 0), (1, 1), "guide"),
    ]
    for reliability, kind in ((before, "before"), (after, "auto")):
        marks += _reliability_marks(axes, reliability, kind) if reliability else []
    return axes.drawing("Accuracy against probability", *marks, *_histogram(axes, after))


def _reliability_marks(axes: Axes, reliability: Reliability, kind: str) -> list[Element]:
    whiskers = [
        axes.line(
            (b.mean_probability, b.accuracy.low), (b.mean_probability, b.accuracy.high), f"whisker {kind}"
        )
        for b in reliability.bins
    ]
    steady = [b for b in reliability.bins if b.rows >= _FEWEST_OF_BIN]
    line = axes.path([(b.mean_probability, b.accuracy.value) for b in steady], f"line thin {kind}")
    dots = [
        axes.dot(
            b.mean_probability, b.accuracy.value, f"dot {kind}", f"{b.accuracy.value:.1%} of {b.rows:,} right"
        )
        for b in reliability.bins
    ]
    return [*(whiskers if kind == "auto" else []), line, *dots]


def _histogram(axes: Axes, reliability: Reliability) -> list[Element]:
    most, foot, tall = max(b.rows for b in reliability.bins), axes.height - 32, 42
    bars = []
    for b in reliability.bins:
        (x, _), (end, _) = axes.place(b.low, 0), axes.place(b.high, 0)
        high = max(1.0, round(tall * b.rows / most, 2))
        about = node("title", f"{b.rows:,} answers between {b.low:.0%} and {b.high:.0%}")
        bars.append(
            node(
                "rect",
                about,
                x=x + 1,
                y=foot - high,
                width=round(end - x - 2, 2),
                height=high,
                class_="column",
            )
        )
    return bars


def plot_dots(dots: Sequence[Dot], about: str, axis: str, promised: float | None = None) -> Element:
    """One row each: a figure and its interval. promised: a line across all of them."""
    values = [side for dot in dots for side in (dot.found.low, dot.found.high)]
    values += [] if promised is None else [promised]
    low, high = max(0.0, math.floor(min(values) * 20) / 20), min(1.0, math.ceil(max(values) * 20) / 20)
    high = max(high, low + 0.05)
    axes = Axes(
        x=(low, high),
        y=(-0.5, len(dots) - 0.5),
        width=680,
        height=66 + _ROW * len(dots),
        left=_NAME,
        right=70,
    )
    marks = axes.grid_x(axis)
    if promised is not None:
        marks.append(axes.line((promised, axes.y[0]), (promised, axes.y[1]), "promised"))
    for place, dot in enumerate(reversed(dots)):
        interval, title = dot.found, f"{dot.found.value:.1%} ({dot.found.low:.1%} to {dot.found.high:.1%})"
        marks += [
            axes.text(low, place, dot.name, "name end", dx=-12, dy=4),
            axes.line((interval.low, place), (interval.high, place), f"whisker {dot.kind}"),
            axes.dot(interval.value, place, f"dot {dot.kind}", title, radius=5.5),
            axes.text(high, place, f"{interval.value:.1%}", "value", dx=12, dy=4),
        ]
    return axes.drawing(about, *marks)
