"""Candidates for the out-of-distribution score, on 20 Newsgroups.

    COLDFRAME_DATA=FOLDER PYTHONPATH=bench:local:layers/model:layers/shared/python .venv-build/bin/python -m \
        coldframe_bench.studies.out_of_distribution

Prints a Markdown table of AUROCs. Everything is fitted on the rows to train on and judged with validation
rows; the test split is not read. `others`: our own texts of other kinds against validation rows. `short`: the
same against the first twenty words of these rows, because our texts are shorter than posts. `left out`: rows
of labels that are left out of everything against those of the labels that stay, the mean of five fifths.
"""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.covariance import ledoit_wolf
from sklearn.linear_model import LogisticRegression

from coldframe.model.estimator import Estimator
from coldframe.progress import Progress
from coldframe_training.embeddings.embed import ServedEncoder, embed_windows, pool, served_encoder
from coldframe_training.embeddings.matrices import Embeddings
from coldframe_training.files.paths import DEFAULT_ENCODER, MODELS
from coldframe_training.out_of_distribution.other_kinds import other_texts
from coldframe_training.report import Strangeness
from coldframe_training.report.figures.detection import auroc
from coldframe_training.report.figures.intervals import Interval
from coldframe_training.thresholds.estimator_outputs import Ids
from coldframe_training.thresholds.lexical import (
    Tfidf,
    Tokens,
    fit_lexical,
    token_ids,
    tokens_of,
    vocabulary_size,
)
from coldframe_training.training.newsgroups import load_task
from coldframe_training.training.train_centroids import directions
from coldframe_training.training_data.samples import SEED, Embedded, Rows, Task, embed_samples, stack_forms

_PARTS = 5
_SHORT_WORDS = 20

Measure = Callable[[Embeddings, Ids], NDArray[np.floating]]
"""Strangeness of texts, (n,), from their embeddings and token ids."""


class Texts(NamedTuple):
    """Texts in both forms that a measure can have."""

    embeddings: Embeddings
    ids: Ids

    def take(self, rows: Rows) -> "Texts":
        """Some of them."""
        return Texts(self.embeddings[rows], [self.ids[row] for row in rows])


class Material(NamedTuple):
    """Everything that is compared. validation, short: of the same rows."""

    train: Embedded
    tokens: Tokens
    vocabulary: int
    validation: Texts
    short: Texts
    others: Texts


def main() -> None:
    """Prints the table."""
    task, encoder = load_task(), served_encoder(MODELS, DEFAULT_ENCODER)
    task = task._replace(validation=_not_empty(task))
    material = gather(task, encoder)
    against_others = compare_others(material, measures_of(material, task.train.target, task.fit))
    left_out = compare_left_out(material, task)
    print("| measure | others | short | left out |\n|---|---|---|---|")
    for name, areas in against_others.items():
        cells = (f"{area.value:.3f} ({area.low:.3f} to {area.high:.3f})" for area in areas)
        print(f"| {name} | {' | '.join(cells)} | {left_out[name]:.3f} |")


def compare_others(material: Material, candidates: Mapping[str, Measure]) -> dict[str, list[Interval]]:
    """Areas of each candidate: our texts against the validation rows, and against their first words."""
    intervals = {}
    for name, measure in candidates.items():
        others = measure(*material.others)
        usual = (measure(*texts) for texts in (material.validation, material.short))
        intervals[name] = [auroc(Strangeness(values, others, False)) for values in usual]
    return intervals


def compare_left_out(material: Material, task: Task) -> dict[str, float]:
    """Mean area of each candidate: rows of labels that it does not know against rows of those it knows."""
    target = task.train.target[task.validation]
    areas_by_name = defaultdict(list)
    for out in Progress(list(fifths(len(task.labels))), desc="leave out", unit="fifth"):
        stays = ~np.isin(np.arange(len(task.labels)), out)
        fit = task.fit[stays[task.train.target[task.fit]]]
        renumbered = (np.cumsum(stays) - 1)[task.train.target]
        for name, measure in measures_of(material, renumbered, fit).items():
            values = measure(*material.validation)
            sides = Strangeness(values[stays[target]], values[~stays[target]], False)
            areas_by_name[name].append(auroc(sides).value)
    return {name: float(np.mean(areas)) for name, areas in areas_by_name.items()}


def _not_empty(task: Task) -> Rows:
    texts = next(iter(task.train.forms.values()))
    return np.array([row for row in task.validation if texts[row].strip()], dtype=np.int64)


def gather(task: Task, encoder: ServedEncoder) -> Material:
    """Embeddings and tokens of everything."""
    train, tokens = embed_samples("train", task.train, encoder), tokens_of("train", task.train, encoder)
    texts = next(iter(task.train.forms.values()))
    short = [" ".join(texts[row].split()[:_SHORT_WORDS]) for row in task.validation]

    def seen(title: str, texts: Sequence[str]) -> Texts:
        return Texts(pool(embed_windows(title, texts, encoder)), token_ids(title, texts, encoder))

    return Material(
        train,
        tokens,
        vocabulary_size(encoder),
        Texts(train.as_sent, tokens.as_sent).take(task.validation),
        seen("short rows", short),
        seen("texts of other kinds", [other.text for other in other_texts()]),
    )


def fifths(labels: int) -> Iterator[NDArray[np.int64]]:
    """Each label once, in parts that are drawn at random."""
    yield from np.array_split(np.random.default_rng(SEED).permutation(labels), _PARTS)


def measures_of(material: Material, target: NDArray[np.int64], fit: Rows) -> dict[str, Measure]:
    """All candidates by name, fitted on the rows `fit`. target: class of every training row."""
    train = material.train._replace(target=target)
    by_tokens = _by_tokens(material.tokens.take(fit), target[fit], material.vocabulary)
    return {**_by_embedding(*stack_forms(train, fit)), **by_tokens}


def _by_embedding(rows: Embeddings, target: NDArray[np.int64]) -> dict[str, Measure]:
    """Mahalanobis: Lee et al. 2018; relative: Ren et al. 2021; shrunk covariance: Ledoit & Wolf 2004."""
    means = np.stack([rows[target == label].mean(axis=0) for label in range(target.max() + 1)])
    middle = rows.mean(axis=0)
    turn, turn_all = _whitening(rows - means[target]), _whitening(rows - middle)
    near = directions(rows, target)
    near_turned = directions(rows @ turn, target)
    head = LogisticRegression(C=0.5, max_iter=500).fit(rows, target)

    def distance(embeddings: Embeddings) -> NDArray[np.floating]:
        squares = ((embeddings @ turn)[:, None, :] - (means @ turn)[None, :, :]) ** 2  # (n, k, d)
        nearest: NDArray[np.floating] = squares.sum(axis=2).min(axis=1)
        return nearest

    def to_all(embeddings: Embeddings) -> NDArray[np.floating]:
        squares: NDArray[np.floating] = (((embeddings - middle) @ turn_all) ** 2).sum(axis=1)
        return squares

    def turned(embeddings: Embeddings) -> NDArray[np.floating]:
        white = embeddings @ turn
        unit: NDArray[np.floating] = white / np.linalg.norm(white, axis=1, keepdims=True)
        return unit

    return {
        "embedding: cosine to the nearest centroid": lambda embeddings, _: -(embeddings @ near).max(axis=1),
        "embedding: the same, whitened": lambda embeddings, _: (
            -(turned(embeddings) @ near_turned).max(axis=1)
        ),
        "embedding: Mahalanobis": lambda embeddings, _: distance(embeddings),
        "embedding: relative Mahalanobis": lambda embeddings, _: distance(embeddings) - to_all(embeddings),
        "logreg: probability": lambda embeddings, _: -head.predict_proba(embeddings).max(axis=1),
        "logreg: energy": lambda embeddings, _: -logsumexp(head.decision_function(embeddings), axis=1),
    }


def _whitening(centred: Embeddings) -> NDArray[np.floating]:
    covariance = ledoit_wolf(centred, assume_centered=True)[0]
    turn: NDArray[np.floating] = np.linalg.cholesky(np.linalg.inv(covariance))
    return turn


def _by_tokens(tokens: Tokens, target: NDArray[np.int64], vocabulary: int) -> dict[str, Measure]:
    """Liu et al. 2020 (energy)."""
    with tempfile.TemporaryDirectory() as scratch:
        facts = fit_lexical(tokens, target, vocabulary, Path(scratch))
        estimator = Estimator(Path(scratch), facts)  # the mapped file outlives its name
    idf = Tfidf(tokens.as_sent, vocabulary).idf

    def of_each(measure: Callable[[list[float]], float]) -> Measure:
        return lambda _, documents: np.array([measure(estimator.evidence(ids)) for ids in documents])

    def of_idf(measure: Callable[[NDArray[np.float32]], float]) -> Measure:
        return lambda _, documents: np.array([measure(idf[sorted(set(ids))]) for ids in documents])

    return {
        "tokens: share unseen": of_idf(lambda values: _mean(values >= facts.unseen_idf)),
        "tokens: mean idf": of_idf(_mean),
        "tokens: evidence length": of_each(lambda evidence: -float(np.linalg.norm(evidence))),
        "estimator: probability": of_each(lambda evidence: -max(estimator.probabilities(evidence))),
        "estimator: energy": of_each(lambda evidence: -float(logsumexp(np.add(evidence, facts.bias)))),
    }


def _mean(values: NDArray[np.generic]) -> float:
    return float(values.mean()) if len(values) else 1.0


if __name__ == "__main__":
    main()
