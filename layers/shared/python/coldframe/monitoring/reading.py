"""Sketches and labels from JSON lines, such as the log lines of a function or a server."""

import json
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from coldframe.monitoring.sketch import Sketch, empty_counts

_LATEST_S = 1e11  # the year 5138: later moments are no moments of a sketch


class SketchLog(NamedTuple):
    """Sketches of log lines. unreadable: lines whose sketch cannot be used."""

    sketches: list[Sketch]
    unreadable: int


class Label(Struct, frozen=True):
    """A true label for one answer of a model and head.

    probability: calibrated probability of the answer. right: whether the answer is right. drawn: how the
    answer was chosen; only labels of randomly drawn answers say something about all answers.
    """

    model: str
    head: str
    probability: float
    right: bool
    drawn: Literal["random", "complaint"]


def read_sketches(lines: Iterable[str]) -> SketchLog:
    """The field `sketch` of each JSON line that has one; text in front of the JSON is skipped."""
    sketches, unreadable = [], 0
    for line in lines:
        value = _object_of(line).get("sketch")
        if value is None:
            continue
        sketch = _sketch_of(value)
        if sketch is None:
            unreadable += 1
        else:
            sketches.append(sketch)
    return SketchLog(sketches, unreadable)


def read_labels(lines: Iterable[str]) -> list[Label]:
    """Labels, one per line. Raises ValueError that names the line."""
    labels = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            label = msgspec.json.decode(line, type=Label)
        except msgspec.MsgspecError as exc:
            raise ValueError(f"Line {number} is not a label: {exc}. Correct or remove the line.") from exc
        if not 0 <= label.probability <= 1:
            raise ValueError(f"Line {number} has a probability outside 0 to 1. Correct or remove the line.")
        labels.append(label)
    return labels


def _object_of(line: str) -> dict[str, Any]:
    start = line.find("{")
    if start < 0 or '"sketch"' not in line:
        return {}
    try:
        value = json.loads(line[start:])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _sketch_of(value: object) -> Sketch | None:
    """A sketch whose numbers fit together; None for any other value."""
    try:
        sketch = msgspec.convert(value, Sketch)
    except msgspec.ValidationError:
        return None
    counts = sketch.counts
    histograms = (counts.confidence, counts.length, counts.unknown, counts.out_of_distribution, counts.labels)
    sums = [number for name, values in asdict(counts).items() if name != "projections" for number in values]
    is_whole = (
        counts.has_shape(empty_counts(len(counts.labels)))
        and min(sums) >= 0
        and sum(counts.fragments) in (0, counts.texts)
        and {sum(histogram) for histogram in histograms} == {counts.texts}
        and counts.texts > 0
        and 0 <= sketch.end_s < _LATEST_S
        and 0 <= sketch.start_s < _LATEST_S
    )
    return sketch if is_whole else None
