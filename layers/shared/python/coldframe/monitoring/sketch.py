"""Sketches: fixed-size counts over answers, without any text, which add up in any order.

All counts are whole numbers, so that sums do not depend on the order of the additions.
"""

import math
from collections.abc import Iterable, Iterator
from operator import add
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

UNIT = 10_000  # units of a probability, a square and a projection: four digits are kept
CONFIDENCE_BINS = 20
LENGTH_BINS = 24  # half octaves: 4,095 tokens or more share the last
UNKNOWN_BINS = 11  # none, then tenths
FRAGMENT_BINS = 11  # none, then twentieths: half of the tokens or more share the last
SCORE_BINS = 20
LABEL_BINS = 48  # labels of a model with more of them share bins
PROJECTIONS = 32


class Counts(Struct, frozen=True):
    """Sums over answers.

    confidence: probability of the best label. length: tokens of a text. unknown: share of its tokens that
    training did not see. out_of_distribution: score of the text. fragments: share of its tokens that
    continue a word; counts from before this quantity have no text in it.
    labels: answers by predicted label. label_confidence, label_squares: sums of the best probability and of
    its square, in units, by predicted label. embedded: texts with an embedding. projections,
    projection_squares: sums of each random projection of the embeddings and of its square, in units.
    """

    confidence: list[int]
    length: list[int]
    unknown: list[int]
    out_of_distribution: list[int]
    labels: list[int]
    label_confidence: list[int]
    label_squares: list[int]
    embedded: list[int]
    projections: list[int]
    projection_squares: list[int]
    fragments: list[int] = field(default_factory=lambda: [0] * FRAGMENT_BINS)

    @property
    def texts(self) -> int:
        """Number of answers."""
        return sum(self.labels)

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            *(list(map(add, sums, more)) for sums, more in zip(self.sums(), other.sums(), strict=True))
        )

    def has_shape(self, other: "Counts") -> bool:
        """Whether both counts have bins for the same labels and quantities."""
        return list(map(len, self.sums())) == list(map(len, other.sums()))

    def sums(self) -> Iterator[list[int]]:
        """The sums of all quantities, in order."""
        return (getattr(self, name) for name in self.__struct_fields__)


class Sketch(Struct, frozen=True):
    """Counts over the answers of one environment for one model and head, in one interval.

    model: version of the model. environment, sequence: identify the sketch, so that it counts once even if it
    is delivered twice. start_s, end_s: first and last moment, in seconds since 1970.
    """

    model: str
    head: str
    environment: str
    sequence: int
    start_s: float
    end_s: float
    counts: Counts

    def as_json(self) -> dict[str, Any]:
        """Value of the field `sketch` in a log line, under 4 KB as JSON."""
        return {**asdict(self), "counts": asdict(self.counts)}

    @property
    def identity(self) -> tuple[str, str, str, int]:
        """Key under which a sketch counts once."""
        return self.model, self.head, self.environment, self.sequence


def empty_counts(labels: int) -> Counts:
    """Counts over no answers. labels: number of labels of the model."""
    bins = min(labels, LABEL_BINS)
    histograms = (CONFIDENCE_BINS, LENGTH_BINS, UNKNOWN_BINS, SCORE_BINS, bins)
    sizes = (*histograms, bins, bins, 1, PROJECTIONS, PROJECTIONS, FRAGMENT_BINS)
    return Counts(*([0] * size for size in sizes))


def distinct(sketches: Iterable[Sketch]) -> list[Sketch]:
    """Each sketch once, in the order of their ends. Of two with one identity, the fuller one stays."""
    kinds: dict[tuple[str, str, str, int], Sketch] = {}
    for sketch in sketches:
        other = kinds.setdefault(sketch.identity, sketch)
        kinds[sketch.identity] = max(sketch, other, key=lambda one: (one.counts.texts, repr(one)))
    return sorted(kinds.values(), key=lambda sketch: (sketch.end_s, sketch.identity))


def share_bin(share: float, bins: int) -> int:
    """Bin of a number from 0 to 1, in equal bins."""
    return min(int(share * bins), bins - 1)


def length_bin(tokens: int) -> int:
    """Bin of a text's length, in half octaves."""
    return min(int(2 * math.log2(tokens + 1)), LENGTH_BINS - 1)


def unknown_bin(unknown: int, tokens: int) -> int:
    """Bin of the share of unknown tokens: 0 for none, and for a text without tokens."""
    return math.ceil(10 * unknown / tokens) if tokens else 0


def fragment_bin(fragments: int, tokens: int) -> int:
    """Bin of the share of tokens that continue a word: 0 for none, and for a text without tokens."""
    return min(math.ceil(20 * fragments / tokens), FRAGMENT_BINS - 1) if tokens else 0


def label_bin(label: int, labels: int) -> int:
    """Bin of a label. labels: number of labels of the model."""
    return label if labels <= LABEL_BINS else label * LABEL_BINS // labels
