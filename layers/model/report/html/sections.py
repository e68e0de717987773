"""Sections of the page about the model as a whole. A section whose figures are missing is None."""

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element

from layers.model.report.figures.coverage import Coverage, CoveragePoint
from layers.model.report.figures.report import HeadScore, Report
from layers.model.report.figures.sharing import EstimatorShare
from layers.model.report.figures.words import count, p_value, percent, points, setting, with_interval
from layers.model.report.html.markup import Child, node, table
from layers.model.report.html.plots import Dot, plot_coverage, plot_dots, plot_reliability


def section(title: str, *children: Child) -> Element:
    """A headed part of the page."""
    return node("section", node("h2", title), *children)


def legend(*entries: tuple[str, str]) -> Element:
    """Legend of a plot: (kind of the mark, words)."""
    items = (node("span", node("i", class_=f"key {kind}"), words) for kind, words in entries)
    return node("p", *items, class_="legend")


def heads(report: Report) -> Element:
    """Every way to answer, side by side, and the baseline."""
    scores = [*report.heads, *([report.baseline.score] if report.baseline else [])]
    kinds = {"auto": "auto", **({report.baseline.score.name: "baseline"} if report.baseline else {})}
    dots = [Dot(score.name, score.accuracy, kinds.get(score.name, "other")) for score in scores]
    headings = ["", "accuracy", "macro F1", "calibration error", "auto against it, points", "p"]
    return section(
        "Heads side by side",
        node(
            "p",
            "All were asked about the same rows. Where intervals overlap, look at the paired difference: it"
            " counts only rows that exactly one of the models has right (exact McNemar test).",
        ),
        plot_dots(dots, "Accuracy of each head, with its 95% interval", "accuracy"),
        table(headings, (_head_row(score) for score in scores)),
        _baseline_words(report),
    )


def _head_row(score: HeadScore) -> list[Child]:
    against = score.against
    return [
        score.name,
        with_interval(score.accuracy),
        with_interval(score.macro_f1),
        percent(score.expected_calibration_error),
        "" if against is None else points(against),
        "" if against is None else p_value(against),
    ]


def _baseline_words(report: Report) -> Child:
    against = report.baseline.score.against if report.baseline else None
    if against is None:
        return None
    error = f"{100 * against.standard_error:.1f} points"
    if against.is_below:
        words = f"auto is below the baseline by more than one standard error ({error}): prefer the baseline."
        return node("p", words, class_="bad")
    return node("p", f"auto is not below the baseline by more than one standard error ({error}).")


def comparison(report: Report) -> Element | None:
    """Against the model that the user named."""
    result = report.comparison
    if result is None:
        return None
    kind = "bad" if result.is_worse else "good" if result.beats else None
    headings = [
        "rows",
        f"only {result.name} right",
        f"only {result.other_name} right",
        "difference, points",
        "p",
    ]
    paired = result.paired
    cells = (
        str(paired.rows),
        str(paired.only_first),
        str(paired.only_second),
        points(paired),
        p_value(paired),
    )
    return section(
        f"Against {result.other_name}",
        node("p", f"{result.line}.", class_=kind),
        table(headings, [cells], words=0),
    )


def abstaining(report: Report) -> Element:
    """Coverage against accuracy."""
    baseline = report.baseline.coverage if report.baseline else None
    entries = [("line auto", "auto, with its 95% interval")]
    entries += [("line baseline", report.baseline.score.name)] if report.baseline else []
    entries += [("dot chosen", "the model's min_probability")] if report.coverage.chosen else []
    return section(
        "What abstaining buys",
        node(
            "p",
            "A caller who takes only answers of at least a min_probability gets fewer answers."
            " More of these are right.",
        ),
        _chosen_words(report),
        plot_coverage(report.coverage, baseline),
        legend(*entries),
        table(
            ["min_probability", "answered", "share", "right"],
            _threshold_rows(report.coverage),
            words=0,
        ),
        node("h3", "For a wanted accuracy"),
        table(
            ["wanted", "min_probability", "answered", "share", "right"],
            ([f"{row.wanted:.0%}", *_coverage_row(row.point)] for row in report.coverage.wanted),
            words=0,
        ),
        node(
            "p",
            "These thresholds are read from the rows that they are judged on, so that they promise a little"
            " too much. Training chooses the threshold of a model on other rows.",
            class_="note",
        ),
    )


def _chosen_words(report: Report) -> Child:
    point = report.coverage.chosen
    if point is None:
        return None
    words = (
        f"At the model's own min_probability, {point.min_probability:g}, auto answers"
        f" {percent(point.coverage)} of the rows, and {with_interval(point.accuracy)} of these answers are"
        f" right. Without abstaining, {percent(report.summary.accuracy.value)} of all answers are."
    )
    return node("p", words)


def _threshold_rows(coverage: Coverage) -> list[Sequence[Child]]:
    """By threshold; that of the model stands out."""
    points = {point.min_probability: point for point in (*coverage.by_threshold, coverage.chosen) if point}
    rows: list[Sequence[Child]] = [_coverage_row(points[threshold]) for threshold in sorted(points)]
    if coverage.chosen:
        place = sorted(points).index(coverage.chosen.min_probability)
        rows[place] = [node("b", cell) for cell in rows[place]]
    return rows


def _coverage_row(point: CoveragePoint | None) -> list[Child]:
    if point is None:
        return ["no threshold", "", "", ""]
    rows = f"{point.answered:,}"
    return [f"{point.min_probability:.3f}", rows, percent(point.coverage), with_interval(point.accuracy)]


def calibration(report: Report) -> Element:
    """Reliability before and after calibration."""
    after, before = report.reliability, report.reliability_before
    entries = [("dot auto", f"calibrated: error {percent(after.expected_calibration_error)}")]
    if before:
        entries.append(("dot before", f"before: error {percent(before.expected_calibration_error)}"))
    return section(
        "Do probabilities keep their word?",
        node(
            "p",
            "On the diagonal, answers of probability 0.8 are right eight times of ten. Below it, the model is"
            " too sure. The bars are the numbers of answers.",
        ),
        plot_reliability(after, before),
        legend(*entries),
        node(
            "p",
            f"On average, auto {_lean(report)}: its mean probability is {percent(after.mean_probability)},"
            f" its accuracy {percent(report.summary.accuracy.value)}. A perfectly calibrated model would"
            f" show an error of {percent(after.by_chance)} on {count(report.summary.rows)}, by chance.",
        ),
    )


def _lean(report: Report) -> str:
    gap = report.reliability.mean_probability - report.summary.accuracy.value
    if abs(gap) <= report.reliability.by_chance:
        return "keeps its word"
    return "promises more than it keeps" if gap > 0 else "keeps more than it promises"


def estimator(report: Report) -> Element | None:
    """Share of the estimator, and agreement of the heads."""
    share = report.estimator
    if share is None:
        return None
    words = (
        f"The estimator answers {with_interval(share.share)} of the rows alone, without the encoder. It is"
        f" right on {with_interval(share.accuracy_alone)} of these. Together with a head it is right on"
        f" {with_interval(share.accuracy_together)} of the others."
    )
    if not share.agreement:
        return section("The estimator's share", node("p", words))
    dots = [Dot(agreement.head, agreement.agrees) for agreement in share.agreement]
    return section(
        "The estimator's share",
        node("p", words),
        node(
            "p",
            f"Its mean probability there is {percent(share.promised)}. Heads that agree clearly less often"
            f" are a sign that the estimator is too sure. Here: {_doubting_heads(share)}.",
        ),
        plot_dots(dots, "How often each head agrees with the estimator", "agrees", promised=share.promised),
        legend(
            ("line promised", "the estimator's mean probability"), ("dot other", "how often a head agrees")
        ),
    )


def _doubting_heads(share: EstimatorShare) -> str:
    """Heads whose agreement is below what is promised by more than its interval."""
    promised = share.promised or 0.0
    doubting = [agreement.head for agreement in share.agreement if agreement.agrees.high < promised]
    return ", ".join(doubting) or "none"


def settings(report: Report) -> Element:
    """How the figures came about."""
    facts: Iterable[tuple[str, str]] = [
        ("model", report.version),
        ("seed", str(report.seed)),
        ("held-out rows that nearly repeat a training row", with_interval(report.near_copies)),
        *((name, setting(value)) for name, value in report.settings.items()),
    ]
    pairs = (child for name, value in facts for child in (node("dt", name), node("dd", value)))
    return section(
        "How this was measured",
        node(
            "p",
            "Intervals are 95%: Wilson's for shares; for macro F1 a bootstrap of 1,000 draws; for paired"
            " differences Bonett and Price's. Calibration error: 15 bins of one width.",
        ),
        node("dl", *pairs),
    )
