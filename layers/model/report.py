"""What a model reached on its test rows: `report.json` beside the manifest."""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_fscore_support
from sklearn.pipeline import make_pipeline

from coldframe.model.bundle import Manifest
from coldframe.model.files import AUTO
from layers.model.samples import Samples, Task, share_right

_MISTAKES = 20
_THRESHOLDS = [round(0.1 * step, 1) for step in range(10)]


class ClassFigures(msgspec.Struct, frozen=True):
    """One label on the test rows. support: how many of them it has."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


class Coverage(msgspec.Struct, frozen=True):
    """Answers over a probability: their share of all, and how many of them are right."""

    over: float
    share: float
    accuracy: float


class Mistake(msgspec.Struct, frozen=True):
    """A row of the file that got a wrong label. Its text is in the file, not here."""

    row: int
    label: str
    answered: str
    probability: float


class Report(msgspec.Struct, frozen=True):
    """Figures of `auto`. interval: Wilson's for the accuracy, 95 %. confusion: rows by label and answer.

    calibration_error: expected, over ten bins of probability (Guo et al. 2017). baseline: accuracy of TF-IDF
    and logistic regression on the same rows.
    """

    rows: int
    accuracy: float
    interval: tuple[float, float]
    macro_f1: float
    calibration_error: float
    baseline: float
    estimator_share: float
    heads: dict[str, float]
    classes: list[ClassFigures]
    coverage: list[Coverage]
    surest_mistakes: list[Mistake]
    confusion: list[list[int]]


def make_report(
    task: Task,
    numbers: Sequence[int],
    by_head: Mapping[str, NDArray[np.floating]],
    manifest: Manifest,
) -> Report:
    """The report. by_head: probabilities (n, k) for the test rows. numbers: of these rows in the file."""
    answers = by_head[AUTO]
    target, chosen = task.test.target, answers.argmax(axis=1)
    classes = class_figures(task.labels, chosen, target)
    confusion = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(confusion, (target, chosen), 1)
    tested = [figures.f1 for figures in classes if figures.support]
    return Report(
        rows=len(target),
        accuracy=round(share_right(answers, target), 4),
        interval=wilson(int((chosen == target).sum()), len(target)),
        macro_f1=round(sum(tested) / len(tested), 4),
        calibration_error=round(calibration_error(answers, target), 4),
        baseline=round(baseline(task.train, task.test), 4),
        estimator_share=next(iter(manifest.estimator.auto_alone.values())),
        heads={name: round(share_right(rows, target), 4) for name, rows in by_head.items()},
        classes=classes,
        coverage=coverage(answers, target),
        surest_mistakes=surest_mistakes(task, numbers, answers),
        confusion=confusion.tolist(),
    )


def class_figures(
    labels: Sequence[str], chosen: NDArray[np.integer], target: NDArray[np.int64]
) -> list[ClassFigures]:
    """Precision, recall and F1 of each label; 0 where nothing can be counted."""
    found = precision_recall_fscore_support(target, chosen, labels=range(len(labels)), zero_division=0)
    return [
        ClassFigures(label, round(float(p), 4), round(float(r), 4), round(float(f), 4), int(support))
        for label, p, r, f, support in zip(labels, *found, strict=True)
    ]


def wilson(right: int, rows: int, z: float = 1.96) -> tuple[float, float]:
    """Confidence interval of a share: Wilson 1927."""
    share, error = right / rows, z * z / rows
    middle = (share + error / 2) / (1 + error)
    half = z * math.sqrt(share * (1 - share) / rows + error / (4 * rows)) / (1 + error)
    return round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)


def calibration_error(answers: NDArray[np.floating], target: NDArray[np.int64], bins: int = 10) -> float:
    """Mean distance between probability and share of right answers, weighted by the answers in each bin."""
    sure, right = answers.max(axis=1), answers.argmax(axis=1) == target
    places = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [abs(float((sure - right)[places == place].sum())) for place in range(bins)]
    return sum(gaps) / len(target)


def coverage(answers: NDArray[np.floating], target: NDArray[np.int64]) -> list[Coverage]:
    """How many answers survive a threshold, and how right they are."""
    sure, right = answers.max(axis=1), answers.argmax(axis=1) == target
    kept = [(over, sure > over) for over in _THRESHOLDS]
    return [
        Coverage(over, round(float(rows.mean()), 4), round(float(right[rows].mean()), 4))
        for over, rows in kept
        if rows.any()
    ]


def surest_mistakes(task: Task, numbers: Sequence[int], answers: NDArray[np.floating]) -> list[Mistake]:
    """The wrong answers with the highest probabilities: often a wrong label in the table."""
    chosen, sure = answers.argmax(axis=1), answers.max(axis=1)
    wrong = np.flatnonzero(chosen != task.test.target)
    first = wrong[np.argsort(-sure[wrong], kind="stable")][:_MISTAKES]
    names, target = task.labels, task.test.target
    return [
        Mistake(numbers[row], names[target[row]], names[chosen[row]], round(float(sure[row]), 4))
        for row in first
    ]


def baseline(train: Samples, test: Samples) -> float:
    """Accuracy of TF-IDF and logistic regression on the same rows: what the model has to be worth."""
    texts = [next(iter(samples.forms.values())) for samples in (train, test)]
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")  # noqa: S106 (words)
    model = make_pipeline(words, LogisticRegression(C=10, max_iter=300)).fit(texts[0], train.target)
    return share_right(model.predict_proba(texts[1]), test.target)
