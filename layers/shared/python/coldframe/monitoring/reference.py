"""Reference: the answers of a model to rows that it was not trained on, as training stores them."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from coldframe.errors import BundleCorrupt
from coldframe.monitoring.recorder import Answer, Projections, count_answer
from coldframe.monitoring.sketch import (
    CONFIDENCE_BINS,
    SCORE_BINS,
    UNIT,
    Counts,
    empty_counts,
    label_bin,
    length_bin,
    share_bin,
    unknown_bin,
)

REFERENCE = "report.monitoring.json"
"""File beside a model's manifest. The model's version does not depend on it, as with its report."""

HISTOGRAMS = ("confidence", "length", "unknown", "out_of_distribution", "labels", "fragments")
"""Quantities of an answer that have a histogram."""

_MOST_ROWS = 4000  # more hardly improve an estimate


class AnswerRows(Struct, frozen=True):
    """Answers, a value in each list for a row: its bins, its probability in units, whether it is right.

    truth: bin of the right label.
    """

    confidence: list[int]
    length: list[int]
    unknown: list[int]
    out_of_distribution: list[int]
    labels: list[int]
    probability: list[int]
    right: list[int]
    truth: list[int]


class Reference(Struct, frozen=True):
    """Answers of one head to validation rows. model: version. labels: names. rows: at most 4,000 of them."""

    model: str
    head: str
    labels: list[str]
    counts: Counts
    rows: AnswerRows


def make_reference(
    head: str, labels: list[str], encoder: str, dimension: int, answers: Iterable[tuple[Answer, int]]
) -> Reference:
    """The reference of a model whose version is still open.

    encoder: version of the encoder. answers: to rows that the model was not trained on, with the position
    of the right label.
    """
    counts, projections = empty_counts(len(labels)), Projections(encoder, dimension)
    rows = []
    for answer, truth in answers:
        projected = None if answer.embedding is None else projections.project(answer.embedding)
        count_answer(counts, answer, len(labels), projected)
        rows.append(_row(answer, len(labels), truth))
    step = -(-len(rows) // _MOST_ROWS) or 1
    columns = zip(*rows[::step], strict=True) if rows else [()] * len(AnswerRows.__struct_fields__)
    return Reference("", head, labels, counts, AnswerRows(*map(list, columns)))


def _row(answer: Answer, labels: int, truth: int) -> tuple[int, ...]:
    return (
        share_bin(answer.probability, CONFIDENCE_BINS),
        length_bin(answer.tokens),
        unknown_bin(answer.unknown, answer.tokens),
        share_bin(answer.out_of_distribution, SCORE_BINS),
        label_bin(answer.label, labels),
        round(UNIT * answer.probability),
        int(truth == answer.label),
        label_bin(truth, labels),
    )


def write_reference(reference: Reference, folder: Path) -> None:
    """Writes `report.monitoring.json` to `folder`, which exists."""
    (folder / REFERENCE).write_bytes(msgspec.json.encode(reference) + b"\n")


def load_references(folders: Iterable[Path]) -> dict[tuple[str, str], Reference]:
    """References of models in their folders, by version and head. Raises BundleCorrupt."""
    references = [reference for folder in folders if (reference := load_reference(folder))]
    return {(reference.model, reference.head): reference for reference in references}


def load_reference(folder: Path) -> Reference | None:
    """The reference in a model's folder; None for a model without one. Raises BundleCorrupt."""
    path = folder / REFERENCE
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Reference)
    except msgspec.MsgspecError as exc:
        raise BundleCorrupt(f"{path} cannot be read: {exc}. Train the model again.") from exc
