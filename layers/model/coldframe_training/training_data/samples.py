"""Training set of heads: texts with their classes and embeddings."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe_training.embeddings.embed import ServedEncoder, embed_windows, pool
from coldframe_training.embeddings.embedding_store import EmbeddedWindows
from coldframe_training.embeddings.matrices import Embeddings

SEED = 20  # of everything that training draws at random

NO_FOLD = -1
"""Fold of a row that is trained on only."""

Rows = NDArray[np.int64]
"""Positions of some of the samples."""


class Samples(NamedTuple):
    """Texts and their classes. Each sample has one or several forms.

    forms: texts (n,) by the name of the form. The first form is how callers will send texts; heads are
    trained on all forms.
    target: class of each sample (n,), a position in the labels.
    """

    forms: dict[str, list[str]]
    target: NDArray[np.int64]


class Task(NamedTuple):
    """Everything that a training reads.

    fit, validation: rows of `train` that choices are made with; `test` chooses nothing.
    folds: a number of each row of `train`, (n,), the same for a whole group, or NO_FOLD; None
    where none are needed.
    """

    labels: list[str]
    train: Samples
    fit: Rows
    validation: Rows
    test: Samples
    folds: Rows | None = None


class Embedded(NamedTuple):
    """Samples as embeddings (n, d), by form, and the windows that these are the means of."""

    forms: dict[str, Embeddings]
    windows: dict[str, list[EmbeddedWindows]]
    target: NDArray[np.int64]

    @property
    def as_sent(self) -> Embeddings:
        """The form in which callers send texts."""
        return next(iter(self.forms.values()))

    def windows_as_sent(self, rows: Rows) -> list[EmbeddedWindows]:
        """The windows of some samples in that form."""
        windows = next(iter(self.windows.values()))
        return [windows[row] for row in rows]


def embed_samples(name: str, samples: Samples, encoder: ServedEncoder) -> Embedded:
    """All forms of all samples. name: shown while it takes its time."""
    windows = {form: embed_windows(f"{name} {form}", texts, encoder) for form, texts in samples.forms.items()}
    return Embedded({form: pool(texts) for form, texts in windows.items()}, windows, samples.target)


def stack_forms(data: Embedded, rows: Rows | slice = slice(None)) -> tuple[Embeddings, NDArray[np.int64]]:
    """Every sample once in each form: a head then does well on all of them."""
    parts = [embeddings[rows] for embeddings in data.forms.values()]
    return np.concatenate(parts), np.tile(data.target[rows], len(parts))


def share_right(probabilities: NDArray[np.floating], target: Sequence[int] | NDArray[np.int64]) -> float:
    """Accuracy: share of the rows whose most probable class is the right one."""
    return float((probabilities.argmax(axis=1) == np.asarray(target)).mean())
