"""The plots of a report."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from coldframe_local.pages.plots import Spec, layer, name, number, palette, plot
from coldframe_training.report.figures.calibration import Reliability
from coldframe_training.report.figures.classes import ClassScore
from coldframe_training.report.figures.coverage import CoveragePoint
from coldframe_training.report.figures.detection import Detection
from coldframe_training.report.figures.evaluation import AUTO
from coldframe_training.report.figures.intervals import Interval
from coldframe_training.report.figures.report import Report
from coldframe_training.report.figures.sharing import EstimatorShare
from coldframe_training.report.figures.words import percent, with_interval

_FEWEST_OF_BIN = 10  # a line through bins of fewer rows shows noise
_FEWEST = 20  # answers; the accuracy of fewer jumps about
_STRONG = 0.55  # a cell of this opacity needs the panel's colour on it
_AUTO, _BASELINE, _OTHER = "var(--auto)", "var(--baseline)", "var(--muted)"
_BAND: Spec = {"type": "area", "color": _AUTO, "opacity": 0.14}
_DASHES: Spec = {"strokeDash": [5, 4]}
_PERCENT: Spec = {"axis": {"format": ".0%", "tickCount": 6}}
_FROM_0_TO_1: Spec = {**_PERCENT, "scale": {"domain": [0, 1]}}
# Each row below has its interval as `share`, and what its mark tells as `about`.
_LOW, _HIGH, _ABOUT = {"field": "share.low"}, {"field": "share.high"}, {"field": "about"}


def plot_coverage(report: Report) -> Markup:
    """Accuracy of the answers that remain, as more and more are given up."""
    title = "auto, with its 95% interval"
    auto = rows = _curve(title, report.coverage.curve)
    colours = {title: _AUTO}
    if report.baseline:
        title = report.baseline.score.name
        rows = [*_curve(title, report.baseline.coverage.curve), *auto]  # auto is drawn last, on top
        colours[title] = _BASELINE
    x = number("coverage", "share of the rows that are answered", **_FROM_0_TO_1)
    y = number("share.value", "accuracy of these answers", **_PERCENT, scale={"zero": False, "domainMax": 1})
    layers = [
        layer(_BAND, auto, x=x, y=y | _LOW, y2=_HIGH),
        layer("line", rows, x=x, y=y, **_series(colours)),
        *_chosen(report.coverage.chosen, x, y),
    ]
    return plot("Accuracy against the share of the rows that are answered", {"layer": layers})


def _curve(series: str, curve: Sequence[CoveragePoint]) -> list[Spec]:
    steady = [point for point in curve if point.answered >= _FEWEST] or curve[-1:]
    return [{"series": series, "coverage": p.coverage, "share": p.accuracy} for p in steady if p.accuracy]


def _series(colours: Mapping[str, str]) -> Spec:
    """Channels of lines. Every line after the first is dashed."""
    dashes = {"domain": list(colours), "range": [[1, 0], *[_DASHES["strokeDash"]] * (len(colours) - 1)]}
    return {"color": name("series", scale=palette(colours)), "strokeDash": name("series", scale=dashes)}


def _chosen(point: CoveragePoint | None, x: Spec, y: Spec) -> list[Spec]:
    """The model's own threshold."""
    if point is None or point.accuracy is None:
        return []
    words = f"the model's min_probability {point.min_probability:g}"
    about = f"{words}: {point.coverage:.1%} answered, {point.accuracy.value:.1%} right"
    rows = [{"coverage": point.coverage, "share": point.accuracy, "about": about}]
    side = {"align": "right", "dx": -10} if point.coverage > 0.6 else {"align": "left", "dx": 10}
    foot = {"value": "height"}
    return [
        layer({"type": "rule", **_DASHES}, rows, x=x, y=y, y2=foot),
        layer({"type": "point", "size": 110, "color": "var(--bad)"}, rows, x=x, y=y, description=_ABOUT),
        layer({"type": "text", "dy": -10, **side}, rows, x=x, y=foot, text={"value": words}),
    ]


def plot_reliability(after: Reliability, before: Reliability | None) -> Markup:
    """Accuracy against probability, bin by bin; below, how many answers each bin has."""
    title = f"calibrated: error {percent(after.expected_calibration_error)}"
    auto = rows = _bins(title, after)
    colours = {title: _AUTO}
    if before:
        title = f"before: error {percent(before.expected_calibration_error)}"
        rows = [*_bins(title, before), *auto]
        colours[title] = _OTHER
    x = number("probability", "probability of the answer", **_FROM_0_TO_1)
    y = number("share.value", "accuracy", **_FROM_0_TO_1)
    series = _series(colours)
    diagonal = [{"probability": end, "share": {"value": end}} for end in (0, 1)]
    steady = [row for row in rows if row["rows"] >= _FEWEST_OF_BIN]
    layers = [
        layer({"type": "line", "color": _OTHER, **_DASHES}, diagonal, x=x, y=y),
        layer({"type": "rule", "color": _AUTO, "size": 2}, auto, x=x, y=y | _LOW, y2=_HIGH),
        layer("line", steady, x=x, y=y, **series),
        layer("point", rows, x=x, y=y, color=series["color"], description=_ABOUT),
    ]
    columns = layer(
        {"type": "bar", "color": _AUTO, "opacity": 0.35},
        [{"bin": b, "about": f"{b.rows:,} answers between {b.low:.0%} and {b.high:.0%}"} for b in after.bins],
        x=number("bin.low", scale={"domain": [0, 1]}, axis=None, bin="binned"),
        x2={"field": "bin.high"},
        y=number("bin.rows", axis=None),
        description=_ABOUT,
    )
    views = [{"layer": layers}, {"height": 42, **columns}]
    return plot("Accuracy against probability", {"vconcat": views, "spacing": 8})


def _bins(series: str, reliability: Reliability) -> list[Spec]:
    return [
        {
            "series": series,
            "probability": b.mean_probability,
            "rows": b.rows,
            "share": b.accuracy,
            "about": f"{b.accuracy.value:.1%} of {b.rows:,} right",
        }
        for b in reliability.bins
    ]


def plot_heads(report: Report) -> Markup:
    """Accuracy of every way to answer."""
    rows = [_dot(head.name, head.accuracy, _AUTO if head.name == AUTO else _OTHER) for head in report.heads]
    if report.baseline:
        rows.append(_dot(report.baseline.score.name, report.baseline.score.accuracy, _BASELINE))
    return _plot_dots("Accuracy of each head, with its 95% interval", "accuracy", rows)


def plot_agreement(share: EstimatorShare) -> Markup:
    """Agreement of each head with the estimator, beside the estimator's mean probability."""
    rows = [_dot(agreement.head, agreement.agrees) for agreement in share.agreement]
    return _plot_dots("How often each head agrees with the estimator", "agrees", rows, share.promised)


def plot_measures(measures: Mapping[str, Detection]) -> Markup:
    """Areas of the measures of strangeness. measures: by the name that the page shows."""
    rows = [_dot(title, one.auroc, _AUTO if one.is_score else _OTHER) for title, one in measures.items()]
    return _plot_dots(
        "How well each measure tells texts of other kinds, with its 95% interval", "AUROC", rows
    )


def _dot(title: str, share: Interval, colour: str = _OTHER) -> Spec:
    return {"title": title, "share": share, "colour": colour, "about": with_interval(share)}


def _plot_dots(about: str, axis: str, rows: Sequence[Spec], promised: float | None = None) -> Markup:
    """One row each: a share and its interval. promised: a line across all rows."""
    x = number("share.value", axis, **_PERCENT, scale={"zero": False})
    both = {"y": name("title"), "color": name("colour", scale=None)}
    layers = [
        layer({"type": "rule", "size": 2}, rows, x=x | _LOW, x2=_HIGH, **both),
        layer({"type": "point", "size": 90}, rows, x=x, description=_ABOUT, **both),
        layer(
            {"type": "text", "align": "left", "dx": 12},
            rows,
            x={"value": "width"},
            y=both["y"],
            text=number("share.value", format=".1%"),
        ),
    ]
    if promised is not None:
        line = {"type": "rule", "color": _BASELINE, "size": 2, **_DASHES}
        layers.insert(0, layer(line, [{"share": {"value": promised}}], x=x))
    return plot(about, {"width": 560, "height": {"step": 30}, "layer": layers})


def plot_score(measure: Detection) -> Markup:
    """Both distributions of a score. Rows that are like those of validation lie flat."""
    shares = {"held-out rows": measure.held_out, "texts of other kinds": measure.others}
    bins = len(measure.held_out)
    rows = [
        {"series": series, "score": place / bins, "share": share}
        for series, values in shares.items()
        for place, share in enumerate([*values, values[-1]])  # the last step ends at 1
    ]
    x = number("score", "out-of-distribution score", **_FROM_0_TO_1)
    y = number("share", "share of the texts", **_PERCENT)
    steps = {"interpolate": "step-after"}
    layers = [
        layer({**_BAND, **steps}, rows[: bins + 1], x=x, y=y),
        layer({"type": "rule", **_DASHES}, [{"share": 1 / bins}], y=y),
        layer(
            {"type": "line", **steps},
            rows,
            x=x,
            y=y,
            **_series(dict(zip(shares, (_AUTO, _BASELINE), strict=True))),
        ),
    ]
    words = f"{percent(measure.others[-1])} of the texts of other kinds are in the last bin"
    return plot(f"Distributions of the score by {measure.name}; {words}", {"height": 220, "layer": layers})


def plot_matrix(report: Report) -> Markup:
    """Rows are the true classes, columns are the answers; a cell is as dark as its share of its row."""
    classes = report.classes
    rows = [_cell(classes[cell.label], classes[cell.said], cell.count) for cell in report.confusion]
    axis = {"tickBand": "extent", "grid": True, "gridColor": "var(--panel)", "labelLimit": 150}
    domain = {"domain": [score.label for score in classes]}
    x = name("said", scale=domain, axis={**axis, "orient": "top", "labelAngle": -60})
    y = name("label", scale=domain, axis=axis)
    opacity = number("opacity", scale=None)
    tiles = layer(
        "rect", rows, x=x, y=y, color=name("colour", scale=None), opacity=opacity, description=_ABOUT
    )
    numbers = layer("text", rows, x=x, y=y, text={"field": "number"}, color=name("ink", scale=None))
    size = {"step": max(22, min(46, 620 // len(classes)))}
    view = {"fill": "var(--line)", "fillOpacity": 0.45}
    return plot("Confusion matrix", {"width": size, "height": size, "view": view, "layer": [tiles, numbers]})


def _cell(label: ClassScore, said: ClassScore, count: int) -> Spec:
    opacity = (count / label.support) ** 0.5  # a rare mistake is still seen
    return {
        "label": label.label,
        "said": said.label,
        "opacity": opacity,
        "colour": "var(--right)" if label is said else "var(--bad)",
        "ink": "var(--panel)" if opacity > _STRONG else "var(--ink)",
        "number": f"{count:,}" if count < 10_000 else f"{count // 1000}k",
        "about": f"{label.label} taken for {said.label}: {count:,} of {label.support:,}",
    }
