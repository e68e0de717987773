"""The page of a report: one file, without scripts and without anything from elsewhere."""

from pathlib import Path

import coldframe_training.report.plots as plots
from coldframe_local.pages.page import render
from coldframe_training.report.figures import words
from coldframe_training.report.figures.classes import ClassScore
from coldframe_training.report.figures.coverage import Coverage, CoveragePoint
from coldframe_training.report.figures.detection import FALSE_ALARMS, Detection
from coldframe_training.report.figures.report import Report
from coldframe_training.report.figures.sharing import EstimatorShare

_MOST_CLASSES = 30  # of a matrix that can be read, and of a table that is not folded


def render_page(report: Report) -> str:
    """The whole page."""
    return render(
        Path(__file__).with_name("page.html"),
        report=report,
        plots=plots,
        words=words,
        most_classes=_MOST_CLASSES,
        ranked=_ranked(report.classes),
        thresholds=_thresholds(report.coverage),
        doubting=_doubting(report.estimator) if report.estimator else "",
        lean=_lean(report),
        measures=_measures(report),
        caught=_caught,
        wrong=sum(cell.count for cell in report.confusion if cell.label != cell.said),
        confused=[
            (pair.label, pair.said, words.number(pair.count), words.percent(pair.share))
            for pair in report.confused
        ],
        mistakes=[(one.row, one.label, one.said, f"{one.probability:.3f}") for one in report.mistakes],
    )


def _ranked(classes: list[ClassScore]) -> list[ClassScore]:
    """Classes, the lowest F1 first; classes without held-out rows come last."""
    return sorted(classes, key=lambda score: (2.0 if score.f1 is None else score.f1, -score.support))


def _thresholds(coverage: Coverage) -> list[CoveragePoint]:
    """Points by threshold, the model's own among them."""
    points = {point.min_probability: point for point in (*coverage.by_threshold, coverage.chosen) if point}
    return [points[threshold] for threshold in sorted(points)]


def _lean(report: Report) -> str:
    gap = report.reliability.mean_probability - report.summary.accuracy.value
    if abs(gap) <= report.reliability.by_chance:
        return "keeps its word"
    return "promises more than it keeps" if gap > 0 else "keeps more than it promises"


def _doubting(share: EstimatorShare) -> str:
    """Heads whose agreement is below what is promised by more than its interval."""
    promised = share.promised or 0.0
    return ", ".join(one.head for one in share.agreement if one.agrees.high < promised) or "none"


def _measures(report: Report) -> dict[str, Detection]:
    """Measures of strangeness by the name that the page shows."""
    detections = report.out_of_distribution
    measures = detections.measures if detections else []
    return {f"score by {one.name}" if one.is_score else one.name: one for one in measures}


def _caught(measure: Detection) -> str:
    """The share of other texts that is caught; a score is coarse where few rows chose its steps."""
    if measure.caught.value == 0 and measure.held_out[-1] > FALSE_ALARMS:
        return f"none: {words.percent(measure.held_out[-1])} of the rows have the highest scores, too"
    return words.with_interval(measure.caught)
