"""A task to a folder of trained heads and estimator.

The encoder is that of the built bundle: its calibration is its own, and nobody's labels touch it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from coldframe.model.estimator import UNTEMPERED
from coldframe.model.files import AUTO, ENSEMBLE
from coldframe.model.heads import Head
from coldframe.monitoring.reference import write_reference
from coldframe.progress import announce
from coldframe_training.embeddings.embed import ServedEncoder, embed_windows, pool
from coldframe_training.embeddings.matrices import find_near_copies, predict_rows
from coldframe_training.files.json_files import write_json
from coldframe_training.files.paths import FACTS
from coldframe_training.out_of_distribution.other_kinds import other_texts
from coldframe_training.out_of_distribution.strangeness import Seen, strangeness
from coldframe_training.publishing.metrics import HeadMetrics, write_metrics
from coldframe_training.report import Strangeness
from coldframe_training.thresholds.estimator import cascade, temper_rows
from coldframe_training.thresholds.estimator_outputs import guesses
from coldframe_training.thresholds.lexical import token_ids
from coldframe_training.training.head_trainers import CHOSEN, Parameters
from coldframe_training.training.monitoring_reference import reference_of
from coldframe_training.training.train_centroids import held_out_strangeness, train_centroids
from coldframe_training.training.train_ensemble import TrainedEnsemble, train_ensemble
from coldframe_training.training.train_estimator import Judged, train_estimator
from coldframe_training.training.train_heads import TrainedHead, abstaining, train_heads
from coldframe_training.training_data.samples import Embedded, Task, embed_samples


class Trained(NamedTuple):
    """Answers of a trained model for the test samples, as callers send them.

    probabilities: (n, k) by the name of the head, `auto` among them. alone: whether the estimator answered
    `auto` alone, (n,). uncalibrated: probabilities of `auto` without any temperature, (n, k).
    estimator: its facts. strangeness: by the name of the measure, for test samples and foreign texts.
    near_copies: marks test samples that nearly repeat a training sample, (n,).
    """

    probabilities: dict[str, NDArray[np.floating]]
    alone: NDArray[np.bool_]
    uncalibrated: NDArray[np.floating]
    estimator: EstimatorFacts
    strangeness: dict[str, Strangeness]
    near_copies: NDArray[np.bool_]


def train(
    task: Task,
    encoder: ServedEncoder,
    folder: Path,
    chosen: Mapping[str, Parameters] = CHOSEN,
    accuracy: float | None = None,
) -> Trained:
    """Writes heads, estimator, centroids, metrics and the reference of the monitor to `folder`.

    accuracy: what the heads and `auto` have to reach by abstaining. Raises OutOfReach when `auto` cannot.
    """
    train_set = embed_samples("train", task.train, encoder)
    test_set = embed_samples("test", task.test, encoder)
    heads = train_heads(chosen, train_set, task.fit, task.validation, test_set, folder)
    if accuracy is not None:
        heads = abstaining(heads, task.train.target[task.validation], accuracy)
    best = max(heads, key=lambda name: heads[name].facts.validation)
    announce("training the estimator, and choosing when it answers alone")
    judged = train_estimator(task, train_set, test_set, best, heads[best], encoder, folder, accuracy)
    centroids = train_centroids(train_set, task.fit, task.validation, folder)
    write_json(folder / FACTS, judged.facts)
    graph = encoder.manifest.graph.removeprefix("sha256:")
    ensemble = ensemble_of(task, judged, heads, test_set, accuracy)
    facts = {name: head.facts for name, head in heads.items()}
    write_metrics(folder, HeadMetrics(task.labels, best, graph, facts, ensemble=ensemble.facts))
    strange = held_out_strangeness(train_set, task.fit, task.validation)
    write_reference(reference_of(task, train_set, judged.held_out, strange, encoder), folder)
    answers = {name: predict_rows(head.served, test_set.as_sent) for name, head in heads.items()}
    announce("measuring how strange foreign texts look")
    seen = Seen(test_set.as_sent, judged.guessed, judged.answers)
    others = _see_others(judged.facts, heads[best].served, encoder, folder)
    scores = strangeness(seen, others, judged.facts, centroids)
    probabilities: dict[str, NDArray[np.floating]] = {
        AUTO: judged.answers,
        **answers,
        ENSEMBLE: ensemble.answers,
    }
    copies = find_near_copies(test_set.as_sent, train_set.as_sent)
    return Trained(probabilities, judged.alone, judged.uncalibrated, judged.facts, scores, copies)


def ensemble_of(
    task: Task,
    judged: Judged,
    heads: Mapping[str, TrainedHead],
    test_set: Embedded,
    accuracy: float | None,
) -> TrainedEnsemble:
    """The ensemble of `auto` and all heads."""
    held_out = {AUTO: judged.held_out.answers, **{name: head.held_out.whole for name, head in heads.items()}}
    test = {
        form: {AUTO: rows}
        | {name: predict_rows(head.served, test_set.forms[form]) for name, head in heads.items()}
        for form, rows in judged.by_form.items()
    }
    target = task.train.target[task.validation]
    return train_ensemble(held_out, target, test, task.test.target, accuracy)


def _see_others(facts: EstimatorFacts, partner: Head, encoder: ServedEncoder, folder: Path) -> Seen:
    """Texts of other kinds, as a model that was just trained sees them.

    folder: of the trained estimator. partner: the head that `auto` averages the estimator with.
    """
    texts = [other.text for other in other_texts()]
    embeddings = pool(embed_windows("texts of other kinds", texts, encoder))
    guessed = guesses(facts, token_ids("texts of other kinds", texts, encoder), folder)
    answers = cascade(guessed, predict_rows(partner, embeddings), facts.threshold)
    temperatures = facts.answer_temperatures or UNTEMPERED
    return Seen(embeddings, guessed, temper_rows(answers, guessed.sure(facts.threshold), temperatures))
