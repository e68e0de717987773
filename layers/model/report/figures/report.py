"""An evaluation becomes a report: every figure of `report.json`, and of the page that shows them."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from layers.model.report.figures.calibration import Reliability, reliability
from layers.model.report.figures.classes import ClassScore, accuracy, class_scores, macro_f1
from layers.model.report.figures.compare import Comparison
from layers.model.report.figures.confusion import Cell, ConfusedPair, confusion_cells, most_confused
from layers.model.report.figures.coverage import Coverage, coverage
from layers.model.report.figures.detection import Detections, detections
from layers.model.report.figures.evaluation import AUTO, Answers, Evaluation, Setting, answers_of
from layers.model.report.figures.intervals import Interval, rounded, wilson
from layers.model.report.figures.mistakes import Mistake, surest_mistakes
from layers.model.report.figures.paired import Paired, pair
from layers.model.report.figures.sharing import EstimatorShare, estimator_share
from layers.model.report.figures.words import count, percent, with_interval

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
    """What is known of a model from its held-out rows.

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
        found = []
        if self.is_useless:
            found.append(
                f"The model is right on {percent(self.summary.accuracy.value)} of the held-out rows. Always"
                f" answering the most frequent label is right on {percent(self.majority)}. Look for wrong"
                " labels, or train on more rows."
            )
        elif self.summary.auto_below_baseline:
            reached = f"The model is right less often than {BASELINE}, by more than one standard error."
            found.append(f"{reached} Prefer that, or train on more rows.")
        if self.near_copies and self.near_copies.value >= MANY_COPIES:
            found.append(
                f"{percent(self.near_copies.value)} of the held-out rows nearly repeat a training row."
                " New texts will be answered less well than these. Keep such rows together with --group."
            )
        return found

    @property
    def line(self) -> str:
        """One line for a terminal."""
        found = self.summary
        line = (
            f"{self.name}: accuracy {with_interval(found.accuracy)}, macro F1 {percent(found.macro_f1.value)}"
        )
        line += f" on {count(found.rows, 'held-out row')}"
        if found.baseline_accuracy is None:
            return line
        return f"{line}; {BASELINE}: {percent(found.baseline_accuracy)}"


def make_report(given: Evaluation, comparison: Comparison | None = None) -> Report:
    """The report of an evaluation. The same evaluation makes the same report.

    comparison: with another model, if one was asked for.
    """
    answers = {name: answers_of(found) for name, found in given.probabilities.items()}
    auto = answers.pop(AUTO)
    right = auto.said == given.target
    heads = [
        _score(AUTO, auto, given, None),
        *(_score(name, head, given, right) for name, head in answers.items()),
    ]
    baseline = _baseline(given, right)
    calibrated = reliability(auto, right, given.seed)
    estimator = None if given.alone is None else estimator_share(given.alone, auto, answers, right)
    confusion = confusion_cells(given.target, auto.said, len(given.labels))
    return Report(
        schema=SCHEMA,
        name=given.name,
        version=given.version,
        seed=given.seed,
        settings=dict(given.settings),
        min_probability=given.min_probability,
        summary=_summary(given, heads[0], baseline, estimator),
        heads=heads,
        baseline=baseline,
        comparison=comparison,
        coverage=coverage(auto, right, given.min_probability),
        reliability=calibrated,
        reliability_before=_reliability_before(given),
        estimator=estimator,
        out_of_distribution=detections(given.strangeness),
        classes=class_scores(given.labels, given.target, auto.said, given.trained_on),
        confused=most_confused(confusion, given.labels),
        confusion=confusion,
        mistakes=surest_mistakes(given.rows, given.labels, given.target, auto),
        majority=_majority(given),
        near_copies=None if given.near_copies is None else wilson(given.near_copies, len(given.target)),
    )


def _majority(given: Evaluation) -> float | None:
    if given.trained_on is None:
        return None
    return rounded((given.target == int(np.argmax(given.trained_on))).mean())


def _score(name: str, answers: Answers, given: Evaluation, auto_right: NDArray[np.bool_] | None) -> HeadScore:
    right = answers.said == given.target
    return HeadScore(
        name,
        accuracy(given.target, answers.said),
        macro_f1(given.target, answers.said, len(given.labels), given.seed),
        reliability(answers, right, given.seed).expected_calibration_error,
        None if auto_right is None else pair(auto_right, right),
    )


def _baseline(given: Evaluation, auto_right: NDArray[np.bool_]) -> Baseline | None:
    if given.baseline is None:
        return None
    answers = answers_of(given.baseline)
    return Baseline(
        _score(BASELINE, answers, given, auto_right), coverage(answers, answers.said == given.target, None)
    )


def _reliability_before(given: Evaluation) -> Reliability | None:
    if given.uncalibrated is None:
        return None
    answers = answers_of(given.uncalibrated)
    return reliability(answers, answers.said == given.target, given.seed)


def _summary(
    given: Evaluation, auto: HeadScore, baseline: Baseline | None, estimator: EstimatorShare | None
) -> Summary:
    against = None if baseline is None else baseline.score.against
    return Summary(
        rows=len(given.target),
        classes=len(given.labels),
        accuracy=auto.accuracy,
        macro_f1=auto.macro_f1,
        expected_calibration_error=auto.expected_calibration_error,
        estimator_share=None if estimator is None else estimator.share.value,
        baseline_accuracy=None if baseline is None else baseline.score.accuracy.value,
        auto_below_baseline=None if against is None else against.is_below,
    )
