"""An evaluation becomes a report: every figure of `report.json`, and of the page that shows them."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe_training.report.figures.calibration import Reliability, reliability
from coldframe_training.report.figures.classes import ClassScore, accuracy, class_scores, macro_f1
from coldframe_training.report.figures.compare import Comparison
from coldframe_training.report.figures.confusion import Cell, ConfusedPair, confusion_cells, most_confused
from coldframe_training.report.figures.coverage import Coverage, coverage
from coldframe_training.report.figures.detection import Detections, detections
from coldframe_training.report.figures.evaluation import (
    AUTO,
    ENSEMBLE,
    Answers,
    Evaluation,
    Setting,
    answers_of,
)
from coldframe_training.report.figures.intervals import Interval, rounded, wilson
from coldframe_training.report.figures.mistakes import Mistake, surest_mistakes
from coldframe_training.report.figures.paired import Paired, pair
from coldframe_training.report.figures.sharing import EstimatorShare, estimator_share
from coldframe_training.report.figures.words import count, percent, with_interval

SCHEMA = 2
MANY_COPIES = 0.1  # of the held-out rows
BASELINE = "TF-IDF + logistic regression"


class HeadScore(msgspec.Struct, frozen=True):
    """One way to answer. against: `auto` against it, on the same rows; None for `auto` itself."""

    name: str
    accuracy: Interval
    macro_f1: Interval
    expected_calibration_error: float
    against: Paired | None


class Baseline(msgspec.Struct, frozen=True):
    """TF-IDF and logistic regression on the same rows."""

    score: HeadScore
    coverage: Coverage


class Summary(msgspec.Struct, frozen=True):
    """The figures of a model in a line, as `GET /v1/models` may serve them.

    auto_below_baseline: whether `auto` is below the baseline by more than one standard error.
    """

    rows: int
    classes: int
    accuracy: Interval
    macro_f1: Interval
    expected_calibration_error: float
    estimator_share: float | None
    baseline_accuracy: float | None
    auto_below_baseline: bool | None


class Report(msgspec.Struct, frozen=True):
    """Figures about a model, measured on its held-out rows.

    confusion: cells [label, said, rows] that are not zero, by position in `classes`.
    out_of_distribution: None when no strangeness was measured.
    near_copies: share of the held-out rows that nearly repeat a training row; None where nobody looked.
    majority: accuracy of always answering the label that most training rows have; None without their counts.
    """

    schema: int
    name: str
    version: str
    seed: int
    settings: dict[str, Setting]
    min_probability: float | None
    summary: Summary
    heads: list[HeadScore]
    baseline: Baseline | None
    comparison: Comparison | None
    coverage: Coverage
    reliability: Reliability
    reliability_before: Reliability | None
    estimator: EstimatorShare | None
    out_of_distribution: Detections | None
    classes: list[ClassScore]
    confused: list[ConfusedPair]
    confusion: list[Cell]
    mistakes: list[Mistake]
    majority: float | None = None
    near_copies: Interval | None = None

    @property
    def is_useless(self) -> bool:
        """Whether the most frequent label, as the answer to everything, is right as often."""
        return self.majority is not None and self.summary.accuracy.value <= self.majority

    @property
    def warnings(self) -> list[str]:
        """Simpler answers that are better, and what to do."""
        lines = []
        if self.is_useless:
            lines.append(
                f"The model is right on {percent(self.summary.accuracy.value)} of the held-out rows. Always"
                f" answering the most frequent label is right on {percent(self.majority)}. Look for wrong"
                " labels, or train on more rows."
            )
        elif self.summary.auto_below_baseline:
            reached = f"The model is right less often than {BASELINE}, by more than one standard error."
            lines.append(f"{reached} Prefer that, or train on more rows.")
        if self.near_copies and self.near_copies.value >= MANY_COPIES:
            lines.append(
                f"{percent(self.near_copies.value)} of the held-out rows nearly repeat a training row."
                " New texts will be answered less well than these. Keep such rows together with --group."
            )
        return lines

    @property
    def line(self) -> str:
        """One line for a terminal."""
        summary = self.summary
        line = f"{self.name}: accuracy {with_interval(summary.accuracy)}"
        line += f", macro F1 {percent(summary.macro_f1.value)} on {count(summary.rows, 'held-out row')}"
        if summary.baseline_accuracy is None:
            return line
        return f"{line}; {BASELINE}: {percent(summary.baseline_accuracy)}"


def make_report(evaluation: Evaluation, comparison: Comparison | None = None) -> Report:
    """The report of an evaluation. The same evaluation makes the same report.

    comparison: with another model, if one was asked for.
    """
    answers = {name: answers_of(rows) for name, rows in evaluation.probabilities.items()}
    auto = answers.pop(AUTO)
    right = auto.said == evaluation.target
    heads = [
        _score(AUTO, auto, evaluation, None),
        *(_score(name, head, evaluation, right) for name, head in answers.items()),
    ]
    baseline = _baseline(evaluation, right)
    calibrated = reliability(auto, right, evaluation.seed)
    apart = {name: head for name, head in answers.items() if name != ENSEMBLE}  # `auto` is a part of that
    estimator = None if evaluation.alone is None else estimator_share(evaluation.alone, auto, apart, right)
    confusion = confusion_cells(evaluation.target, auto.said, len(evaluation.labels))
    return Report(
        schema=SCHEMA,
        name=evaluation.name,
        version=evaluation.version,
        seed=evaluation.seed,
        settings=dict(evaluation.settings),
        min_probability=evaluation.min_probability,
        summary=_summary(evaluation, heads[0], baseline, estimator),
        heads=heads,
        baseline=baseline,
        comparison=comparison,
        coverage=coverage(auto, right, evaluation.min_probability),
        reliability=calibrated,
        reliability_before=_reliability_before(evaluation),
        estimator=estimator,
        out_of_distribution=detections(evaluation.strangeness),
        classes=class_scores(evaluation.labels, evaluation.target, auto.said, evaluation.trained_on),
        confused=most_confused(confusion, evaluation.labels),
        confusion=confusion,
        mistakes=surest_mistakes(evaluation.rows, evaluation.labels, evaluation.target, auto),
        majority=_majority(evaluation),
        near_copies=None
        if evaluation.near_copies is None
        else wilson(evaluation.near_copies, len(evaluation.target)),
    )


def _majority(evaluation: Evaluation) -> float | None:
    if evaluation.trained_on is None:
        return None
    return rounded((evaluation.target == int(np.argmax(evaluation.trained_on))).mean())


def _score(
    name: str, answers: Answers, evaluation: Evaluation, auto_right: NDArray[np.bool_] | None
) -> HeadScore:
    right = answers.said == evaluation.target
    return HeadScore(
        name,
        accuracy(evaluation.target, answers.said),
        macro_f1(evaluation.target, answers.said, len(evaluation.labels), evaluation.seed),
        reliability(answers, right, evaluation.seed).expected_calibration_error,
        None if auto_right is None else pair(auto_right, right),
    )


def _baseline(evaluation: Evaluation, auto_right: NDArray[np.bool_]) -> Baseline | None:
    if evaluation.baseline is None:
        return None
    answers = answers_of(evaluation.baseline)
    return Baseline(
        _score(BASELINE, answers, evaluation, auto_right),
        coverage(answers, answers.said == evaluation.target, None),
    )


def _reliability_before(evaluation: Evaluation) -> Reliability | None:
    if evaluation.uncalibrated is None:
        return None
    answers = answers_of(evaluation.uncalibrated)
    return reliability(answers, answers.said == evaluation.target, evaluation.seed)


def _summary(
    evaluation: Evaluation, auto: HeadScore, baseline: Baseline | None, estimator: EstimatorShare | None
) -> Summary:
    against = None if baseline is None else baseline.score.against
    return Summary(
        rows=len(evaluation.target),
        classes=len(evaluation.labels),
        accuracy=auto.accuracy,
        macro_f1=auto.macro_f1,
        expected_calibration_error=auto.expected_calibration_error,
        estimator_share=None if estimator is None else estimator.share.value,
        baseline_accuracy=None if baseline is None else baseline.score.accuracy.value,
        auto_below_baseline=None if against is None else against.is_below,
    )
