"""The monitor on 20 Newsgroups: estimated and true accuracy, drift, false alarms, and the bound.

    COLDFRAME_DATA=FOLDER PYTHONPATH=bench:local:layers/model:layers/shared/python .venv-build/bin/python -m \
        coldframe_bench.studies.monitoring

A model is trained on the stripped documents of the training split, with the head `mlp`. The traffic is 4,000
documents of the test split, and 1,500 of them with typing errors. Prints Markdown tables.
"""

import math
import random
import tempfile
import timeit
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from coldframe.model.files import AUTO
from coldframe.model.tokenizer import TextWindows
from coldframe.monitoring.accuracy import (
    LabelledAnswer,
    bound_risk,
    estimate_accuracy,
    most_gain,
    stakes,
    unit_error,
)
from coldframe.monitoring.drift import find_drift
from coldframe.monitoring.recorder import Answer, Projections, Recorder, count_answer
from coldframe.monitoring.reference import HISTOGRAMS, Reference, load_reference
from coldframe.monitoring.sketch import Counts, Sketch, empty_counts
from coldframe.progress import Progress
from coldframe.vectors import to_vector
from coldframe_training.embeddings.embed import served_encoder
from coldframe_training.files.paths import DEFAULT_ENCODER, MODELS
from coldframe_training.thresholds.lexical import token_ids
from coldframe_training.training.head_trainers import CHOSEN
from coldframe_training.training.newsgroups import load_task
from coldframe_training.training.train import train
from coldframe_training.training.train_estimator import unknown_tokens
from coldframe_training.training_data.samples import SEED, Samples, Task

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
    windows = TextWindows(encoder.folder, encoder.facts)
    rows, scores = trained.probabilities[AUTO], trained.strangeness[AUTO].held_out
    answers = [
        Answer(
            int(row.argmax()),
            float(row.max()),
            len(tokens),
            count,
            float(score),
            fragments=windows.count_fragments(tokens),
        )
        for row, tokens, count, score in zip(rows, ids, unknown, scores, strict=True)
    ]
    right = rows.argmax(axis=1) == task.test.target
    lengths = np.array([len(tokens) for tokens in ids])
    return Traffic(answers, right, task.test.target, lengths, typed, reference, len(task.labels))


class Mix(NamedTuple):
    """Texts of one kind. rows: positions of answers, drawn with replacement."""

    name: str
    rows: NDArray[np.int64]


def mixes_of(traffic: Traffic, dice: np.random.Generator) -> Iterator[Mix]:
    """Twenty mixes: of classes, lengths, typing errors, and of all three."""
    clean = (~traffic.typed).astype(float)
    for number in range(1, 9):
        yield _mix(f"classes {number}", clean * _class_weights(traffic, dice), dice)
    for power in (-1.0, -0.5, 0.5, 1.0):
        yield _mix(f"length to the power {power:g}", clean * (traffic.tokens + 10.0) ** power, dice)
    for share in (0.25, 0.5, 0.75, 1.0):
        yield _mix(f"{share:.0%} with errors", _with_share(traffic, share), dice)
    for number, power in enumerate((-1.0, -0.5, 0.5, 1.0), 9):
        weights = _class_weights(traffic, dice) * (traffic.tokens + 10.0) ** power * _with_share(traffic, 0.5)
        yield _mix(f"classes {number}, length to the power {power:g}, half with errors", weights, dice)


def _class_weights(traffic: Traffic, dice: np.random.Generator) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = dice.dirichlet(np.full(traffic.labels, 0.5))[traffic.target]
    return weights


def _with_share(traffic: Traffic, share: float) -> NDArray[np.float64]:
    """Weights with which a share of the texts has typing errors."""
    typed = traffic.typed.mean()
    weights: NDArray[np.float64] = np.where(traffic.typed, share / typed, (1 - share) / (1 - typed))
    return weights


def _mix(name: str, weights: NDArray[np.float64], dice: np.random.Generator) -> Mix:
    return Mix(name, dice.choice(len(weights), _MIX, p=weights / weights.sum()))


def counts_of(traffic: Traffic, rows: Sequence[int]) -> Counts:
    """Counts over some answers."""
    counts = empty_counts(traffic.labels)
    for row in rows:
        count_answer(counts, traffic.answers[row], traffic.labels, None)
    return counts


def accuracy_lines(traffic: Traffic) -> Iterator[str]:
    """Table of the mixes: true accuracy, both estimates, and how many are within two points."""
    yield "| mix | accuracy | CBPE | M-CBPE |\n|---|---|---|---|"
    within = np.zeros(2, dtype=int)
    for mix in mixes_of(traffic, np.random.default_rng(SEED)):
        estimate = estimate_accuracy(counts_of(traffic, mix.rows.tolist()), traffic.reference)
        if estimate is None or estimate.m_cbpe is None:
            raise SystemExit("Error: a mix has no estimate. Report this as a bug.")
        true, both = traffic.right[mix.rows].mean(), np.array([estimate.cbpe, estimate.m_cbpe])
        within += np.abs(both - true) <= _WITHIN
        yield f"| {mix.name} | {true:.3f} | {both[0]:.3f} | {both[1]:.3f} |"
    yield f"| within two points | | {within[0]} of 20 | {within[1]} of 20 |"


class Bins(NamedTuple):
    """Bin of each answer in each histogram, (n,) by name, and the histograms' sizes."""

    bins: dict[str, NDArray[np.int64]]
    sizes: dict[str, int]

    def week(self, hours: Sequence[NDArray[np.int64]], labels: int) -> list[Sketch]:
        """A sketch for each hour. hours: rows of answers."""
        return [
            Sketch(
                "model", AUTO, "environment", number, 0.0, _HOUR_S * (number + 0.5), self.counts(rows, labels)
            )
            for number, rows in enumerate(hours)
        ]

    def counts(self, rows: NDArray[np.int64], labels: int) -> Counts:
        """Histograms of some answers."""
        sums = {
            name: np.bincount(bins[rows], minlength=self.sizes[name]).tolist()
            for name, bins in self.bins.items()
        }
        return Counts(**(asdict(empty_counts(labels)) | sums))


def bins_of(traffic: Traffic) -> Bins:
    """Bins of all answers."""
    each = [counts_of(traffic, [row]) for row in range(len(traffic.answers))]
    bins = {name: np.array([getattr(counts, name) for counts in each]).argmax(axis=1) for name in HISTOGRAMS}
    return Bins(bins, {name: len(getattr(each[0], name)) for name in HISTOGRAMS})


def shifts_of(traffic: Traffic) -> dict[str, NDArray[np.float64]]:
    """Weights of the answers by kind of shift."""
    clean = (~traffic.typed).astype(float)
    return {
        "half of the classes": clean * (traffic.target % 2),
        "texts four times as long": clean * (traffic.tokens + 10.0),
        "texts with typing errors": traffic.typed.astype(float),
    }


def drift_lines(traffic: Traffic) -> Iterator[str]:
    """Share of weeks without a shift that raise an alarm, and of shifts that are found within 500 texts."""
    dice, bins = np.random.default_rng(SEED), bins_of(traffic)
    clean = np.flatnonzero(~traffic.typed)
    references = [bins.counts(dice.choice(clean, 2_000), traffic.labels) for _ in range(_WEEKS)]

    def is_alarm(number: int, hours: Sequence[NDArray[np.int64]]) -> bool:
        return any(week.drifted for week in find_drift(references[number], bins.week(hours, traffic.labels)))

    weeks = Progress(range(_WEEKS), desc="weeks", unit="week")
    alarms = sum(is_alarm(number, list(dice.choice(clean, (_WEEK_HOURS, _HOURLY)))) for number in weeks)
    yield f"false alarms: {alarms} of {_WEEKS:,} weeks with {_WEEK_HOURS * _HOURLY:,} texts"
    for name, weights in shifts_of(traffic).items():
        hits = 0
        for number in Progress(range(_SHIFTS), desc=name, unit="shift"):
            quiet = list(dice.choice(clean, (int(dice.integers(1, 160)), _HOURLY)))
            shifted = dice.choice(len(weights), (500 // _HOURLY, _HOURLY), p=weights / weights.sum())
            hits += is_alarm(number, [*quiet, *shifted])
        yield f"{name}: found within 500 texts in {hits} of {_SHIFTS}"


def bound_lines(traffic: Traffic) -> Iterator[str]:
    """Share of runs that break the bound at any of 200 looks, and the interval after 200 labels."""
    dice = random.Random(SEED)
    mix = list(mixes_of(traffic, np.random.default_rng(SEED)))[-1]
    labels = [LabelledAnswer(traffic.answers[row].probability, bool(traffic.right[row])) for row in mix.rows]
    mean = sum(label.probability for label in labels) / len(labels)
    risk = 1 - sum(label.is_right for label in labels) / len(labels)
    broken = 0
    for _ in Progress(range(_RUNS), desc="bounds", unit="run"):
        errors = [unit_error(label) for label in dice.choices(labels, k=_LABELS)]
        bets = stakes(errors, 0.05)
        gains = (most_gain(errors, bets, 0.5 * (risk + mean), sign) for sign in (1, -1))
        broken += max(gains) >= math.log(2 / 0.05)
    yield f"bound broken: {broken} of {_RUNS:,} runs with {_LABELS} labels and a look after each"
    bounds = [bound_risk(mean, dice.choices(labels, k=_LABELS)) for _ in range(50)]
    width = sum(bound.high - bound.low for bound in bounds) / len(bounds)
    yield f"risk {risk:.3f}; the interval after {_LABELS} labels is {width:.3f} wide"


def recorder_lines() -> Iterator[str]:
    """Microseconds for each answer, with an embedding and without."""
    embedding = to_vector(np.random.default_rng(SEED).normal(scale=0.05, size=384).tolist())
    for name, answer in (
        ("with an embedding", Answer(3, 0.8, 90, 2, 0.4, embedding)),
        ("without", Answer(3, 0.8, 90, 2, 0.4)),
    ):
        records = Recorder("model", AUTO, 20, Projections("sha256:encoder", 384), "environment", 0.0)
        seconds = min(timeit.repeat(partial(records.add, answer), number=2000, repeat=9))
        yield f"recorder, {name}: {seconds / 2000 * 1e6:.0f} µs for each answer"


def main() -> None:
    """Prints the tables."""
    traffic = answer_all()
    for lines in (accuracy_lines, drift_lines, bound_lines):
        print("\n".join(lines(traffic)), flush=True)
    print("\n".join(recorder_lines()))


if __name__ == "__main__":
    main()
