"""A task becomes a model: trained, judged, assembled, proved and reported."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import msgspec

from coldframe.model.files import model_folder
from coldframe.model.verify import load_whole_encoder
from coldframe.progress import announce
from coldframe_training.embeddings.embed import ServedEncoder
from coldframe_training.publishing.assemble import assemble, publish_reference
from coldframe_training.publishing.metrics import read_metrics, write_metrics
from coldframe_training.publishing.publish import whole_model
from coldframe_training.report import Report, make_report, write_predictions, write_report
from coldframe_training.training.check_served import prove
from coldframe_training.training.evaluate import check_not_worse, compare_with, evaluation_of, figures_of
from coldframe_training.training.head_trainers import Parameters
from coldframe_training.training.train import train
from coldframe_training.training.trained_on import Opponent, write_digests
from coldframe_training.training_data.samples import Task


class ModelFolder(msgspec.Struct, frozen=True):
    """Where a model is made. trained: folder that training writes to. models: where the model appears."""

    name: str
    trained: Path
    models: Path


def make_model(
    task: Task,
    numbers: Sequence[int],
    place: ModelFolder,
    encoder: ServedEncoder,
    chosen: Mapping[str, Parameters],
    seed: int,
    other: Opponent | None = None,
    must_beat: bool = False,
    accuracy: float | None = None,
    provenance: Mapping[str, str] = MappingProxyType({}),
    predictions: Path | None = None,
) -> Report:
    """Trains and judges a model; it appears when everything about it is right, and not before.

    numbers: of the test rows in their file. other: a model to compare with. accuracy: below which
    the model rather abstains. provenance: for the report. predictions: file for the answers to the test rows.
    Raises a BundleError, HeadDiffers, AnswersDiffer, EvaluationFault, NotBetter with `must_beat`, or
    OutOfReach for an accuracy that validation does not support.
    """
    with whole_model(place.models, place.name) as stage:
        answers = train(task, encoder, place.trained, chosen, accuracy)
        evaluation = evaluation_of(place.name, task, numbers, answers, seed)
        evaluation = replace(evaluation, settings={**evaluation.settings, **provenance})
        report = make_report(evaluation)
        metrics = read_metrics(place.trained)
        write_metrics(place.trained, msgspec.structs.replace(metrics, figures=figures_of(report.summary)))
        announce("writing the model, and comparing its served answers with training's")
        loaded = load_whole_encoder(stage, encoder.manifest.name)
        manifest = assemble(stage, place.name, place.trained, loaded)
        prove(stage, place.name, task.test, answers.probabilities)
        evaluation = replace(evaluation, version=manifest.version)
        if other:
            announce("comparing with the other model")
        comparison = compare_with(other, task, evaluation) if other else None
        if must_beat:
            check_not_worse(comparison, report)
        report = msgspec.structs.replace(report, version=manifest.version, comparison=comparison)
        write_report(report, model_folder(stage, place.name))
        publish_reference(place.trained, model_folder(stage, place.name), manifest.version)
        write_digests(chain.from_iterable(task.train.forms.values()), model_folder(stage, place.name))
        if predictions:
            write_predictions(evaluation, predictions)
    return report
