"""Evaluation of a trained model: its answers, the baseline's, another model's."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from coldframe.config import Settings
from coldframe.model.estimator import UNTEMPERED
from coldframe.model.files import AUTO
from coldframe.pipeline.models import load_predictor
from coldframe.schemas import Figures
from coldframe_training.embeddings.matrices import to_matrix
from coldframe_training.report import Comparison, Evaluation, Report, Summary, answered_by, compare, part_of
from coldframe_training.training.train import Trained
from coldframe_training.training.trained_on import Opponent
from coldframe_training.training_data.samples import Samples, Task


class NotBetter(Exception):
    """A model that had to stand against another one is worse."""


def evaluation_of(name: str, task: Task, numbers: Sequence[int], trained: Trained, seed: int) -> Evaluation:
    """The model on its test rows, with TF-IDF and logistic regression beside it. It has no version yet.

    numbers: of the test rows in their file.
    """
    facts = trained.estimator
    temperatures = facts.answer_temperatures or UNTEMPERED
    return Evaluation(
        name=name,
        version="",
        labels=task.labels,
        target=task.test.target,
        rows=np.array(numbers, dtype=np.int64),
        probabilities=trained.probabilities,
        alone=trained.alone,
        uncalibrated=trained.uncalibrated,
        baseline=baseline(task.train, task.test),
        trained_on=np.bincount(task.train.target, minlength=len(task.labels)).tolist(),
        min_probability=facts.min_probability or None,
        strangeness=trained.strangeness,
        near_copies=int(trained.near_copies.sum()),
        seed=seed,
        settings={
            "rows trained on": len(task.train.target),
            "rows that choices are made with": len(task.validation),
            "temperature of the estimator": facts.temperature,
            "threshold of the estimator": facts.threshold,
            "temperature of answers by the estimator alone": temperatures[0],
            "temperature of answers by both": temperatures[1],
            "partner of the estimator": facts.partner,
        },
    )


def figures_of(summary: Summary) -> Figures:
    """Figures of a report for the manifest."""
    accuracy = summary.accuracy
    return Figures(
        rows=summary.rows,
        accuracy=accuracy.value,
        accuracy_interval=(accuracy.low, accuracy.high),
        macro_f1=summary.macro_f1.value,
        expected_calibration_error=summary.expected_calibration_error,
        estimator_share=summary.estimator_share or 0.0,
        baseline_accuracy=summary.baseline_accuracy or 0.0,
    )


def baseline(train: Samples, test: Samples) -> NDArray[np.float64]:
    """Probabilities (n, k) of the test rows by TF-IDF and logistic regression, as a measure."""
    texts = [next(iter(samples.forms.values())) for samples in (train, test)]
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")  # noqa: S106 (words)
    model = make_pipeline(words, LogisticRegression(C=10, max_iter=300)).fit(texts[0], train.target)
    probabilities: NDArray[np.float64] = model.predict_proba(texts[1])
    return probabilities


def compare_with(other: Opponent, task: Task, evaluation: Evaluation) -> Comparison:
    """The model against another one, which is asked about the same texts."""
    predictor = load_predictor(Settings(model_dir=other.folder.parent, models=other.folder.name))
    manifest = predictor.manifest
    texts = next(iter(task.test.forms.values()))
    rows = [texts[row] for row in other.rows]
    answers = to_matrix(predictor.predict(rows, [AUTO], use_cache=False).answers[AUTO])[:, :-1]
    part = part_of(evaluation, other.rows)
    theirs = answered_by(manifest.name, manifest.version, manifest.labels, answers, part)
    return compare(part, theirs, other.left_out)


def check_not_worse(comparison: Comparison | None, report: Report) -> None:
    """Raises NotBetter when the model is worse than the other one, or than no model, by more than chance."""
    if comparison and comparison.is_worse:
        raise NotBetter(f"{comparison.line}. --must-beat is given: nothing was written.")
    if report.is_useless:
        raise NotBetter(f"{report.warnings[0]} --must-beat is given: nothing was written.")
