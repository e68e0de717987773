"""A task to a folder of trained heads and estimator.

The encoder is that of the built bundle: its calibration is its own, and nobody's labels touch it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EstimatorFacts
from coldframe.model.files import AUTO
from layers.model.embed import ServedEncoder
from layers.model.head_trainers import CHOSEN, Parameters
from layers.model.json_files import write_json
from layers.model.metrics import HeadMetrics, write_metrics
from layers.model.paths import FACTS
from layers.model.samples import Task, embed_samples
from layers.model.train_estimator import train_estimator
from layers.model.train_heads import train_heads


class Trained(NamedTuple):
    """What a trained model says of the test samples as callers send them.

    probabilities: (n, k) by the name of the head, `auto` among them. alone: whether the estimator answered
    `auto` alone, (n,). uncalibrated: of `auto` if the estimator had no temperature, (n, k). estimator: facts.
    """

    probabilities: dict[str, NDArray[np.floating]]
    alone: NDArray[np.bool_]
    uncalibrated: NDArray[np.floating]
    estimator: EstimatorFacts


def train(
    task: Task, encoder: ServedEncoder, folder: Path, chosen: Mapping[str, Parameters] = CHOSEN
) -> Trained:
    """Writes heads, estimator and metrics to `folder`."""
    train_set = embed_samples("train", task.train, encoder)
    test_set = embed_samples("test", task.test, encoder)
    heads = train_heads(chosen, train_set, task.fit, task.validation, test_set, folder)
    best = max(heads, key=lambda name: heads[name].facts.validation)
    judged = train_estimator(task, test_set, best, heads[best], encoder, folder)
    write_json(folder / FACTS, judged.facts)
    graph = encoder.manifest.graph.removeprefix("sha256:")
    metrics = HeadMetrics(task.labels, best, graph, {name: head.facts for name, head in heads.items()})
    write_metrics(folder, metrics)
    answers = {name: head.served.predict(test_set.as_sent) for name, head in heads.items()}
    return Trained({AUTO: judged.answers, **answers}, judged.alone, judged.uncalibrated, judged.facts)
