"""Recorder: an environment's answers as sketches, by the standard library alone."""

from collections.abc import Sequence
from operator import itemgetter, mul
from threading import Lock
from typing import NamedTuple

from coldframe.digests import blake2b
from coldframe.monitoring.sketch import (
    CONFIDENCE_BINS,
    PROJECTIONS,
    SCORE_BINS,
    UNIT,
    Counts,
    Sketch,
    empty_counts,
    fragment_bin,
    label_bin,
    length_bin,
    share_bin,
    unknown_bin,
)
from coldframe.vectors import Vector, to_floats

INTERVAL_S = 60.0


class Answer(NamedTuple):
    """One answer of a model, as the recorder counts it.

    label: position of the best label. probability: its calibrated probability. tokens, unknown: tokens of the
    text, and the number of them that training did not see. out_of_distribution: score of the text, 0 to 1.
    embedding: of a text with one window that the encoder read for this answer, else None.
    fragments: number of the tokens that continue a word.
    """

    label: int
    probability: float
    tokens: int
    unknown: int
    out_of_distribution: float
    embedding: Vector | None = None
    fragments: int = 0


class Projections:
    """Random projections of embeddings. Read only.

    Each value of an embedding has a random sign and counts for one of 32 sums: count sketch, Charikar, Chen &
    Farach-Colton 2002. The draw depends on the encoder's version alone, so that environments agree.
    """

    def __init__(self, encoder: str, dimension: int) -> None:
        """encoder: version of the encoder. dimension: values of an embedding, at least two."""
        draws = [blake2b(f"{encoder}/{value}".encode(), digest_size=8).digest() for value in range(dimension)]
        order = sorted(range(dimension), key=draws.__getitem__)
        self._shuffle = itemgetter(*order)
        self._signs = [1 if draws[value][7] & 1 else -1 for value in order]

    def project(self, embedding: Vector) -> list[float]:
        """The 32 projections of one embedding."""
        signed = list(map(mul, self._signs, self._shuffle(to_floats(embedding))))
        return [sum(signed[number::PROJECTIONS]) for number in range(PROJECTIONS)]


class Recorder:
    """Counts answers of one model and head, and hands them over as sketches.

    Safe for threads: a lock holds all counts. Nothing here waits, reads a clock or writes.
    """

    def __init__(
        self, model: str, head: str, labels: int, projections: Projections, environment: str, start_s: float
    ) -> None:
        """model: version. environment: unique name, made anew after a snapshot is restored.

        labels: number of labels. start_s: present moment, in seconds since 1970.
        """
        self._model, self._head, self._environment = model, head, environment
        self._labels, self._projections = labels, projections
        self._lock = Lock()
        self._counts = empty_counts(labels)
        self._start_s = start_s
        self._sequence = 0

    def add(self, answer: Answer) -> None:
        """Counts one answer."""
        projected = None if answer.embedding is None else self._projections.project(answer.embedding)
        with self._lock:
            count_answer(self._counts, answer, self._labels, projected)

    def hand_over(self, now_s: float, interval_s: float = INTERVAL_S) -> Sketch | None:
        """The answers since the last sketch; None before the interval is over, and without answers.

        now_s: present moment, in seconds since 1970. A clock that jumps back delays no sketch.
        """
        with self._lock:
            if not self._counts.texts or 0 <= now_s - self._start_s < interval_s:
                return None
            counts, self._counts = self._counts, empty_counts(self._labels)
            start_s, self._start_s = self._start_s, now_s
            self._sequence += 1
            sequence = self._sequence
        return Sketch(self._model, self._head, self._environment, sequence, start_s, now_s, counts)


def count_answer(counts: Counts, answer: Answer, labels: int, projected: Sequence[float] | None) -> None:
    """Adds one answer to counts, in place. projected: projections of its embedding, if it has one."""
    label = label_bin(answer.label, labels)
    counts.confidence[share_bin(answer.probability, CONFIDENCE_BINS)] += 1
    counts.length[length_bin(answer.tokens)] += 1
    counts.unknown[unknown_bin(answer.unknown, answer.tokens)] += 1
    counts.out_of_distribution[share_bin(answer.out_of_distribution, SCORE_BINS)] += 1
    counts.fragments[fragment_bin(answer.fragments, answer.tokens)] += 1
    counts.labels[label] += 1
    counts.label_confidence[label] += round(UNIT * answer.probability)
    counts.label_squares[label] += round(UNIT * answer.probability**2)
    if projected is not None:
        counts.embedded[0] += 1
        for number, value in enumerate(projected):
            counts.projections[number] += round(UNIT * value)
            counts.projection_squares[number] += round(UNIT * value * value)
