"""Temperatures of the answers of `auto`, chosen on rows that neither estimator nor partner head has seen.

The rows are those for validation. Of a small table they are too few: each fold of the training rows is then
answered by a model of the other folds.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from coldframe_training.thresholds.estimator import cascade, choose_answer_temperature
from coldframe_training.thresholds.estimator_outputs import Guesses, guesses
from coldframe_training.thresholds.lexical import Tokens, fit_lexical
from coldframe_training.thresholds.long_texts import Steps, steps_of, windows_read
from coldframe_training.training.head_trainers import Parameters, new_head
from coldframe_training.training_data.samples import NO_FOLD, Embedded, Rows, Task, stack_forms

_ENOUGH = 200  # validation rows


class Said(NamedTuple):
    """Answers of `auto` before their temperatures, (n, k).

    alone: whether the estimator answers alone, (n,). target: classes, (n,).
    """

    answers: NDArray[np.float64]
    alone: NDArray[np.bool_]
    target: NDArray[np.int64]


class Partner(NamedTuple):
    """The name of the estimator's partner head, and how it is trained."""

    name: str
    parameters: Parameters


def answer_temperatures(said: Said) -> tuple[float, float]:
    """Temperatures for answers by the estimator alone, and for answers by both parts."""
    alone, together = (
        choose_answer_temperature(said.answers[rows], said.target[rows]) for rows in (said.alone, ~said.alone)
    )
    return alone, together


def say(guessed: Guesses, steps: Steps, facts: EstimatorFacts, target: NDArray[np.int64]) -> Said:
    """Answers of `auto`, with as many windows read as serving reads."""
    read = windows_read(guessed, steps, facts.settled_margin)
    answers = cascade(guessed, steps.at(read), facts.threshold)
    return Said(answers, guessed.sure(facts.threshold), target)


def folds_of(task: Task) -> list[Rows]:
    """Rows of each fold; none where validation rows are enough, or where a fold has all rows of a label."""
    if task.folds is None or len(task.validation) >= _ENOUGH:
        return []
    labels, parts = len(task.labels), np.unique(task.folds[task.folds != NO_FOLD])
    if any(len(np.unique(task.train.target[task.folds != part])) < labels for part in parts):
        return []
    return [np.flatnonzero(task.folds == part) for part in parts]


def say_fold(
    rows: Rows, task: Task, train: Embedded, tokens: Tokens, partner: Partner, facts: EstimatorFacts
) -> Said:
    """Answers for some training rows, by a model of all others. facts: temperature, threshold, margin."""
    others, target = np.setdiff1d(np.arange(len(task.train.target)), rows), task.train.target
    head = new_head(partner.name, partner.parameters).fit(*stack_forms(train, others))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        fitted = fit_lexical(tokens.take(others), target[others], facts.vocabulary, folder)
        bare = guesses(fitted, tokens.take(rows).as_sent, folder)
    steps = steps_of(head.predict_proba, train.windows_as_sent(rows))
    return say(bare.at(facts.temperature), steps, facts, target[rows])


def join(parts: list[Said]) -> Said:
    """The rows of all parts."""
    return Said(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
