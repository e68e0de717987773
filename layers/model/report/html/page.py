"""The page of a report: one file, without scripts and without anything from elsewhere."""

from pathlib import Path
from xml.etree.ElementTree import Element

from layers.model.report.figures.report import Report
from layers.model.report.figures.words import count, percent, range_of
from layers.model.report.html import class_sections, doubt_section, sections
from layers.model.report.html.markup import Child, node, to_html

_STYLE = Path(__file__).with_name("style.css")


def render_page(report: Report) -> str:
    """The whole page."""
    head = node(
        "head",
        node("meta", charset="utf-8"),
        node("title", f"{report.name}: report"),
        node("meta", name="viewport", content="width=device-width, initial-scale=1"),
        node("meta", name="color-scheme", content="light dark"),
        node("style", _STYLE.read_text()),
    )
    parts = (
        sections.heads(report),
        sections.comparison(report),
        sections.abstaining(report),
        sections.calibration(report),
        sections.estimator(report),
        doubt_section.doubt(report),
        class_sections.classes(report),
        class_sections.confusions(report),
        class_sections.mistakes(report),
        sections.settings(report),
    )
    warnings = (node("p", f"Warning: {warning}", class_="bad") for warning in report.warnings)
    main = node("main", *warnings, _tiles(report), *parts)
    return to_html(node("html", head, node("body", _header(report), main), lang="en"))


def _header(report: Report) -> Element:
    summary = report.summary
    rows = f"{count(summary.rows, 'held-out row')}, {count(summary.classes, 'class')}"
    return node(
        "header",
        node("h1", report.name),
        node("p", f"{rows}. The model was not trained on these rows. ", node("code", report.version)),
    )


def _tiles(report: Report) -> Element:
    summary, error = report.summary, report.reliability
    tiles: list[Child] = [
        _tile("accuracy", percent(summary.accuracy.value), range_of(summary.accuracy)),
        _tile("macro F1", percent(summary.macro_f1.value), range_of(summary.macro_f1)),
        _tile(
            "calibration error",
            percent(error.expected_calibration_error),
            f"{percent(error.by_chance)} would be chance",
        ),
        _baseline_tile(report),
        _chosen_tile(report),
        None
        if report.estimator is None
        else _tile("estimator alone", percent(report.estimator.share.value), "answers without the encoder"),
    ]
    return node("div", *tiles, class_="tiles")


def _baseline_tile(report: Report) -> Child:
    against = report.baseline.score.against if report.baseline else None
    if against is None:
        return None
    gained = f"{100 * against.difference.value:+.1f}".replace("-", "−")
    about = "below by more than its standard error" if against.is_below else "percentage points of accuracy"
    return _tile("against the baseline", gained, about, "bad" if against.is_below else "")


def _chosen_tile(report: Report) -> Child:
    point = report.coverage.chosen
    if point is None:
        return None
    accuracy = "none is left" if point.accuracy is None else f"{percent(point.accuracy.value)} of them right"
    return _tile(
        "answered", percent(point.coverage), f"{accuracy}, min_probability {point.min_probability:g}"
    )


def _tile(name: str, figure: str, about: str, kind: str = "") -> Element:
    return node(
        "div",
        node("span", name, class_="name"),
        node("strong", figure, class_=kind or None),
        node("span", about, class_="about"),
        class_="tile",
    )
