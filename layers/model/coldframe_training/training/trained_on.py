"""Digests of the texts that a model was trained on: another model is compared with it on other texts."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from coldframe.model.tokenizer import normalise
from coldframe_training.report import REPORT_DIGESTS
from coldframe_training.training_data.samples import Samples

_MIN_ROWS = 20  # of a comparison: with fewer, hardly any difference is more than chance
_BYTES = 6  # of a million texts, one in 280 million others is taken for one of them


class NotComparable(Exception):
    """Too few rows are new to both of two models."""


class Opponent(NamedTuple):
    """A model to compare with. folder: its own. rows: positions of the test rows that it is asked about.

    left_out: test rows that it was trained on; None where it does not say.
    """

    folder: Path
    rows: list[int]
    left_out: int | None


def write_digests(texts: Iterable[str], folder: Path) -> None:
    """Writes the digests of texts to `report.digests` in `folder`, which exists; no text is in it."""
    (folder / REPORT_DIGESTS).write_bytes(b"".join(sorted({_digest(text) for text in texts})))


def count_missing(texts: Iterable[str], folder: Path) -> int:
    """How many texts that the model in `folder` was trained on are not among `texts`; 0 if unknown."""
    if not (folder / REPORT_DIGESTS).exists():
        return 0
    return len(_read_digests(folder) - {_digest(text) for text in texts})


def find_unseen(texts: Sequence[str], folder: Path) -> list[int] | None:
    """Positions of the texts that the model in `folder` was not trained on; None if it does not say."""
    if not (folder / REPORT_DIGESTS).exists():
        return None
    digests = _read_digests(folder)
    return [place for place, text in enumerate(texts) if _digest(text) not in digests]


def opponent_of(folder: Path, test: Samples, has_own_test: bool) -> Opponent:
    """The model in `folder` with the test rows that it can be asked about.

    has_own_test: the rows are a file of their own: they count, even if the model does not say what it was
    trained on. Raises NotComparable.
    """
    texts = next(iter(test.forms.values()))
    unseen = find_unseen(texts, folder)
    if unseen is None and not has_own_test:
        raise NotComparable(
            f"{folder.name} does not say which rows it was trained on, and may know the held-out rows."
            f" Give rows that it was not trained on with --test FILE, or train {folder.name} again."
        )
    rows = list(range(len(texts))) if unseen is None else unseen
    if len(rows) < _MIN_ROWS:
        raise NotComparable(
            f"{folder.name} was not trained on {len(rows):,} of the {len(texts):,} rows to test with. A"
            f" comparison needs {_MIN_ROWS}. Give rows that are new to both models with --test FILE."
        )
    return Opponent(folder, rows, None if unseen is None else len(texts) - len(rows))


def _read_digests(folder: Path) -> set[bytes]:
    content = (folder / REPORT_DIGESTS).read_bytes()
    return {content[start : start + _BYTES] for start in range(0, len(content), _BYTES)}


def _digest(text: str) -> bytes:
    return hashlib.sha256(normalise(text).encode()).digest()[:_BYTES]
