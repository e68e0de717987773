"""The monitor on 20 Newsgroups: estimated and true accuracy, drift, false alarms, and the bound.

    COLDFRAME_DATA=FOLDER PYTHONPATH=.:layers/shared/python .venv-build/bin/python -m \
        layers.model.study.monitoring

A model is trained on the stripped documents of the training split, with the head `mlp`. The traffic is 4,000
documents of the test split, and 1,500 of them with typing errors. Prints Markdown tables.
"""

import random
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.model.files import AUTO
from coldframe.monitoring.recorder import Answer
from coldframe.monitoring.reference import Reference, load_reference
from layers.model.embeddings.embed import served_encoder
from layers.model.files.paths import DEFAULT_ENCODER, MODELS
from layers.model.thresholds.lexical import token_ids
from layers.model.training.head_trainers import CHOSEN
from layers.model.training.newsgroups import load_task
from layers.model.training.train import train
from layers.model.training.train_estimator import unknown_tokens
from layers.model.training_data.samples import SEED, Samples, Task

_CLEAN, _TYPED = 4_000, 1_500  # documents as they are, and with typing errors
_ERRORS = 0.15  # share of their words with an error
_MIX = 4_000  # texts of a mix
_WITHIN = 0.02  # of the true accuracy
_HOUR_S, _WEEK_HOURS = 3600.0, 168
_HOURLY = 100  # texts
_WEEKS, _SHIFTS, _RUNS, _LABELS = 1_000, 200, 10_000, 200


class Traffic(NamedTuple):
    """Answers of the model to all documents, and the reference. typed: marks documents with errors, (n,)."""

    answers: list[Answer]
    right: NDArray[np.bool_]
    target: NDArray[np.int64]
    tokens: NDArray[np.int64]
    typed: NDArray[np.bool_]
    reference: Reference
    labels: int


def with_errors(text: str, dice: random.Random) -> str:
    """A text whose words have typing errors: a letter is dropped, doubled, swapped or replaced."""
    return " ".join(_typed(word, dice) if dice.random() < _ERRORS else word for word in text.split())


def _typed(word: str, dice: random.Random) -> str:
    place = dice.randrange(len(word))
    letter, before, after = word[place], word[:place], word[place + 1 :]
    other = dice.choice("abcdefghijklmnopqrstuvwxyz")
    return dice.choice([before + after, before + letter + letter + after, before + other + after,
                        before + after[:1] + letter + after[1:]])  # fmt: skip


def stripped_task() -> tuple[Task, NDArray[np.bool_]]:
    """The example with stripped documents alone; some test documents come again with typing errors."""
    task, dice = load_task(), random.Random(SEED)
    texts, target = task.test.forms["stripped"], task.test.target
    rows = np.random.default_rng(SEED).choice(len(texts), _CLEAN, replace=False)
    clean = [texts[row] for row in rows]
    typed = [with_errors(text, dice) for text in clean[:_TYPED]]
    train_set = task.train._replace(forms={"stripped": task.train.forms["stripped"]})
    test = Samples({"stripped": clean + typed}, np.concatenate([target[rows], target[rows[:_TYPED]]]))
    is_typed = np.arange(len(test.target)) >= len(clean)
    return task._replace(train=train_set, test=test), is_typed


def answer_all() -> Traffic:
    """Trains the model, and collects its answers."""
    task, typed = stripped_task()
    encoder = served_encoder(MODELS, DEFAULT_ENCODER)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        trained = train(task, encoder, folder, {"mlp": CHOSEN["mlp"]})
        ids = token_ids("test", task.test.forms["stripped"], encoder)
        unknown = unknown_tokens(trained.estimator, ids, folder)
        reference = load_reference(folder)
    if reference is None:
        raise SystemExit("Error: training wrote no reference. Report this as a bug.")
    rows, scores = trained.probabilities[AUTO], trained.strangeness[AUTO].held_out
    answers = [
        Answer(int(row.argmax()), float(row.max()), len(tokens), count, float(score))
        for row, tokens, count, score in zip(rows, ids, unknown, scores, strict=True)
    ]
    right = rows.argmax(axis=1) == task.test.target
    lengths = np.array([len(tokens) for tokens in ids])
    return Traffic(answers, right, task.test.target, lengths, typed, reference, len(task.labels))
