"""Embeddings to trained heads: validate, train on everything, convert, prove the converted head equal."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from coldframe.model.bundle import HeadFacts
from coldframe.model.heads import Head, load_head
from coldframe.progress import Progress
from coldframe_training.embeddings.matrices import Embeddings, predict_rows
from coldframe_training.publishing.head_files import save_head, unpack_head
from coldframe_training.thresholds.abstaining import OutOfReach, abstain
from coldframe_training.thresholds.long_texts import Steps, steps_of
from coldframe_training.training.convert import CONVERTERS
from coldframe_training.training.head_trainers import Parameters, TrainableHead, new_head
from coldframe_training.training_data.samples import Embedded, Rows, share_right, stack_forms

_MIN_AGREEMENT = 0.999
_MAX_DIFFERENCE = 1e-3


class TrainedHead(NamedTuple):
    """A head that is in its file, and what it reached.

    held_out: what a head that was not trained on the validation rows says of them.
    """

    facts: HeadFacts
    served: Head
    held_out: Steps


class HeadDiffers(Exception):
    """A converted head does not answer as the trained one."""


def train_heads(
    chosen: Mapping[str, Parameters],
    train: Embedded,
    fit: Rows,
    validation: Rows,
    test: Embedded,
    folder: Path,
) -> dict[str, TrainedHead]:
    """Every head of `chosen`, by name; their files are in `folder`."""
    heads = {}
    for name, parameters in (bar := Progress(chosen.items(), desc="train heads", unit="head")):
        bar.set_postfix_str(name)
        heads[name] = train_head(name, parameters, train, fit, validation, test, folder)
        reached = ", ".join(f"{accuracy:.1%}" for accuracy in heads[name].facts.accuracy.values())
        Progress.write(f"head {name}: {reached} of the held-out rows right")
    return heads


def abstaining(
    heads: Mapping[str, TrainedHead], target: NDArray[np.int64], accuracy: float
) -> dict[str, TrainedHead]:
    """The heads, each with the `min_probability` that keeps an accuracy; says so of one that cannot.

    target: classes of the validation rows.
    """
    return {name: _abstaining(name, head, target, accuracy) for name, head in heads.items()}


def _abstaining(name: str, head: TrainedHead, target: NDArray[np.int64], accuracy: float) -> TrainedHead:
    try:
        choice = abstain(name, head.held_out.whole, target, accuracy)
    except OutOfReach as exc:
        Progress.write(f"{exc} It answers everything.")
        return head
    return head._replace(facts=replace(head.facts, min_probability=choice))


def train_head(
    name: str,
    parameters: Parameters,
    train: Embedded,
    fit: Rows,
    validation: Rows,
    test: Embedded,
    folder: Path,
) -> TrainedHead:
    """One head, trained on all of `train` in the end; `test` chooses nothing."""
    fitted = new_head(name, parameters).fit(*stack_forms(train, fit))
    held_out = steps_of(fitted.predict_proba, train.windows_as_sent(validation))
    trained = new_head(name, parameters).fit(*stack_forms(train))
    save_head(folder, name, CONVERTERS[name](trained))
    served = load_saved(folder, name)
    check_agreement(name, served, trained, test.as_sent)
    accuracies = {
        form: round(share_right(predict_rows(served, embeddings), test.target), 4)
        for form, embeddings in test.forms.items()
    }
    validated = round(share_right(held_out.whole, train.target[validation]), 4)
    facts = HeadFacts(accuracies, validated, dict(parameters))
    return TrainedHead(facts, served, held_out)


def load_saved(folder: Path, name: str) -> Head:
    """The head in `folder` as an environment would load it."""
    with tempfile.TemporaryDirectory() as scratch:
        unpack_head(folder, name, Path(scratch))
        return load_head(Path(scratch), name)


def check_agreement(name: str, served: Head, trained: TrainableHead, embeddings: Embeddings) -> None:
    """Proves the converted head on all of `embeddings`. Raises HeadDiffers."""
    converted, original = predict_rows(served, embeddings), trained.predict_proba(embeddings)
    agreement = float((converted.argmax(axis=1) == original.argmax(axis=1)).mean())
    difference = float(np.abs(converted - original).max())
    shares = (
        f"{name}: converted head agrees on {agreement:.4%} of the test split, largest |Δp| {difference:.1e}"
    )
    if agreement < _MIN_AGREEMENT or difference > _MAX_DIFFERENCE:
        raise HeadDiffers(f"{shares}; expected at least {_MIN_AGREEMENT:.1%} and at most {_MAX_DIFFERENCE}.")
