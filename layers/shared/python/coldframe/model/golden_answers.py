"""Golden answers: what each head and the estimator of a model return for its encoder's golden texts.

Training writes them. A machine on which a head answers differently computes it wrongly, or has other files.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from coldframe.errors import BundleCorrupt
from coldframe.model.bundle import Golden, Manifest
from coldframe.model.encoder import RowEncoder
from coldframe.model.estimator import Estimator
from coldframe.model.files import ANSWERS, REBUILD, read_file
from coldframe.model.heads import load_head
from coldframe.model.tokenizer import TextWindows, content_tokens
from coldframe.vectors import to_floats

ESTIMATOR_ANSWERS = "estimator"  # beside the names of heads

_MAX_DIFFERENCE = 0.1  # of a probability: rounding may change a tree's branch, damage changes more


class GoldenAnswer(Struct, frozen=True, array_like=True):
    """The most probable label, as a position in the labels, and its probability."""

    label: int
    probability: float


GoldenAnswers: TypeAlias = dict[str, list[GoldenAnswer]]
"""Answers to each golden text, by head and for the estimator."""


def load_answers(folder: Path) -> GoldenAnswers:
    """The golden answers of the model in `folder`. Raises BundleMissing or BundleCorrupt."""
    try:
        return msgspec.json.decode(read_file(folder, ANSWERS), type=GoldenAnswers)
    except msgspec.MsgspecError as exc:
        raise BundleCorrupt(f"{folder / ANSWERS} cannot be read: {exc}. {REBUILD}") from exc


def probabilities_of_golden(
    folder: Path, manifest: Manifest, encoder: RowEncoder, tokenizer: TextWindows, golden: Golden
) -> dict[str, list[list[float]]]:
    """Probabilities (texts, k) by head, and by the estimator, of the first window of each golden text."""
    windows = [tokenizer.cut([vector.text])[0][:1] for vector in golden.vectors]
    embeddings = [encoder.encode(rows)[0] for rows in windows]
    by_head = {
        head: [to_floats(row) for row in load_head(folder, head).predict(embeddings)]
        for head in manifest.heads
    }
    estimator = Estimator(folder, manifest.estimator)
    return {**by_head, ESTIMATOR_ANSWERS: [estimator.predict(content_tokens(rows)) for rows in windows]}


def answers_of(probabilities: dict[str, list[list[float]]]) -> GoldenAnswers:
    """The answers with these probabilities."""
    return {name: [_answer(row) for row in rows] for name, rows in probabilities.items()}


def check_answers(probabilities: dict[str, list[list[float]]], expected: GoldenAnswers) -> None:
    """Raises BundleCorrupt for the first head whose probability differs from the golden answer."""
    for name, answers in expected.items():
        rows = probabilities.get(name, [])
        if len(rows) != len(answers):
            raise BundleCorrupt(
                f"{ANSWERS} has {len(answers)} answers of {name}, expected {len(rows)}. {REBUILD}"
            )
        for answer, row in zip(answers, rows, strict=True):
            difference = abs(row[answer.label] - answer.probability)
            if not difference <= _MAX_DIFFERENCE:  # this form also fails for NaN
                raise BundleCorrupt(
                    f"{name} gives a golden text's label the probability {row[answer.label]:.3f}; where it"
                    f" was trained it gave {answer.probability:.3f}. Its files are damaged, or this processor"
                    f" computes it wrongly. {REBUILD}"
                )


def _answer(row: Sequence[float]) -> GoldenAnswer:
    label = max(range(len(row)), key=row.__getitem__)
    return GoldenAnswer(label, round(row[label], 6))
