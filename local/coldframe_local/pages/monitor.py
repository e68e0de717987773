"""Page of `coldframe monitor`: evidence, accuracy with its intervals, and the quantities that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from coldframe.monitoring.drift import ALARM_EVIDENCE, Shift, Week
from coldframe.monitoring.report import Report
from coldframe_local.pages.page import render
from coldframe_local.pages.plots import layer, name, number, plot

_FRAME = {"width": 620, "padding": {"left": 24, "right": 24, "top": 6, "bottom": 6}}  # labels may be wide
_PERCENT = {"axis": {"format": ".0%", "tickCount": 6}, "scale": {"domain": [0, 1]}}


class Tile(NamedTuple):
    """A figure. basis: what it rests on. kind: `good`, `bad` or nothing."""

    name: str
    value: str
    basis: str
    kind: str = ""


def monitor_page(reports: Sequence[Report]) -> str:
    """The page, which needs the extra `plan`. It loads nothing from elsewhere."""
    return render(Path(__file__).with_name("monitor.html"), reports=[_section(one) for one in reports])


def _section(report: Report) -> dict[str, Any]:
    return {
        "title": f"{report.model[:19]} {report.head}",
        "traffic": f"{report.texts:,} texts from {_time(report.start_s)} to {_time(report.end_s)} UTC,"
        f" environments: {report.environments}",
        "tiles": list(_tiles(report)),
        "notes": report.notes,
        "accuracy": _accuracy(report),
        "evidence": _evidence(report.weeks),
        "shifts": [_row(week, shift) for week in report.weeks for shift in week.shifts],
    }


def _tiles(report: Report) -> Iterator[Tile]:
    kind = "bad" if report.drifted else "good"
    yield Tile("texts", "drifted" if report.drifted else "no drift", "all answers, no labels", kind)
    accuracy = report.accuracy
    yield Tile("accuracy, estimated", _share(accuracy.best), f"± {accuracy.margin:.1%}; no labels")
    if report.expected_accuracy is not None:
        yield Tile("accuracy, expected", _share(report.expected_accuracy), "validation rows of the training")
    if risk := report.risk:
        interval = f"{_share(1 - risk.high)} to {_share(1 - risk.low)}"
        yield Tile("accuracy, by labels", _share(1 - risk.risk), f"{interval}; {risk.labels:,} random labels")
    if report.complaints:
        wrong = f"{report.wrong_complaints:,} wrong; no other figure rests on them"
        yield Tile("complaints", f"{report.complaints:,}", wrong)


def _accuracy(report: Report) -> Markup:
    """Intervals of the accuracy, a row for each basis."""
    best, margin = report.accuracy.best, report.accuracy.margin
    marks = [_interval("no labels", best, max(0.0, best - margin), min(1.0, best + margin))]
    if risk := report.risk:
        basis = f"{risk.labels:,} random labels"
        marks.append(_interval(basis, 1 - risk.risk, 1 - risk.high, 1 - risk.low))
    if (expected := report.expected_accuracy) is not None:
        marks.append(_interval("validation rows", expected, expected, expected))
    y, x = name("basis"), number("value", "accuracy, with its 95% interval", **_PERCENT)
    layers = [
        layer("rule", marks, y=y, x=x | {"field": "low"}, x2={"field": "high"}),
        layer("point", marks, y=y, x=x, description={"field": "about"}),
    ]
    return plot("Accuracy by what it rests on", {"height": 40 * len(marks), **_FRAME, "layer": layers})


def _interval(basis: str, value: float, low: float, high: float) -> dict[str, Any]:
    about = f"{basis}: {value:.1%}, {low:.1%} to {high:.1%}"
    return {"basis": basis, "value": value, "low": low, "high": high, "about": about}


def _evidence(weeks: Sequence[Week]) -> Markup:
    """Evidence of each quantity in its strongest week, beside the alarm's."""
    strongest: dict[str, Shift] = {}
    for shift in (shift for week in weeks for shift in week.shifts):
        other = strongest.setdefault(shift.quantity, shift)
        strongest[shift.quantity] = max(shift, other, key=lambda one: one.evidence)
    bars = [
        {"quantity": _word(one), "evidence": one.evidence, "about": f"{_word(one)}: {one.evidence:.1f}"}
        for one in sorted(strongest.values(), key=lambda one: -one.evidence)
    ]
    title = f"evidence, as a power of ten; an alarm needs {ALARM_EVIDENCE:.0f}"
    x, y = number("evidence", title, scale={"type": "symlog"}, axis={"tickCount": 4}), name("quantity")
    layers = [
        layer("bar", bars, x=x, y=y, description={"field": "about"}),
        layer(
            {"type": "rule", "strokeDash": [5, 4], "color": "var(--bad)"}, [{}], x={"datum": ALARM_EVIDENCE}
        ),
    ]
    return plot("Evidence that a quantity has changed", {"height": 26 * len(bars), **_FRAME, "layer": layers})


def _row(week: Week, shift: Shift) -> tuple[str, ...]:
    alarmed = week.drifted and shift.evidence >= ALARM_EVIDENCE
    return (
        _word(shift),
        f"{_time(week.start_s)[:10]}, {week.texts:,} texts",
        f"{shift.evidence:.1f}",
        f"{shift.distance:.2f}",
        _time(shift.since_s) if alarmed else "",
        "changed" if alarmed else "as before",
    )


def _word(shift: Shift) -> str:
    return shift.quantity.replace("_", " ")


def _share(value: float) -> str:
    return f"{value:.1%}"


def _time(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%d %H:%M")
