"""When `auto` stops reading a long text: what its partner head says after each window, and a margin.

The margin is by how much the best label has to lead in the mean of guess and partner, chosen on validation
rows. A lead that is large enough says that the windows left would not change the label.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe_training.embeddings.embed import pool
from coldframe_training.embeddings.embedding_store import EmbeddedWindows
from coldframe_training.embeddings.matrices import Embeddings
from coldframe_training.thresholds.estimator import cascade, combine
from coldframe_training.thresholds.estimator_outputs import Guesses
from coldframe_training.training_data.samples import share_right

READ_ALL = 1.0
MARGINS = [round(0.1 + 0.05 * step, 2) for step in range(9)]
_MIN_AGREEMENT = 0.99  # share of early labels that all windows would have given, too
_MIN_ROWS = 20  # long ones that the estimator is unsure of: with fewer, nobody can tell


class Steps(NamedTuple):
    """Outputs of a head for documents after each of their windows.

    after: probabilities (n, k) after one window, after two, …; a shorter document repeats those of its last
    window. windows: number of windows per document, (n,).
    """

    after: list[NDArray[np.floating]]
    windows: NDArray[np.int64]

    @property
    def whole(self) -> NDArray[np.floating]:
        """Probabilities with every window read."""
        return self.after[-1]

    def at(self, read: NDArray[np.int64]) -> NDArray[np.floating]:
        """Probabilities after `read` windows of each document: (n, k)."""
        embeddings: NDArray[np.floating] = np.stack(self.after)[read - 1, np.arange(len(read))]
        return embeddings


def steps_of(
    predict: Callable[[Embeddings], NDArray[np.floating]], texts: Sequence[EmbeddedWindows]
) -> Steps:
    """Outputs of a head for texts, window by window."""
    counts = np.array([len(text.tokens) for text in texts], dtype=np.int64)
    whole = predict(pool(texts))
    after = []
    for read in range(1, int(counts.max())):
        rows = np.flatnonzero(counts > read)
        steps = whole.copy()
        steps[rows] = predict(pool([texts[row] for row in rows.tolist()], at_most=read))
        after.append(steps)
    return Steps([*after, whole], counts)


def windows_read(outputs: Guesses, steps: Steps, margin: float) -> NDArray[np.int64]:
    """Windows that `auto` reads of each document that the estimator is unsure of: (n,)."""
    read = steps.windows.copy()
    for number in range(len(steps.after) - 1, 0, -1):  # the first stop is the one that counts
        means = np.sort(combine(outputs, steps.after[number - 1]), axis=1)
        settled = means[:, -1] - means[:, -2] > margin
        read[settled & (steps.windows > number)] = number
    return read


def choose_margin(outputs: Guesses, steps: Steps, threshold: float, target: NDArray[np.int64]) -> float:
    """The lowest margin that costs no accuracy, and with which nearly no label would change by reading on."""
    long = (steps.windows > 1) & ~outputs.sure(threshold)
    if long.sum() < _MIN_ROWS:
        return READ_ALL
    everything = cascade(outputs, steps.whole, threshold)
    for margin in MARGINS:
        read = windows_read(outputs, steps, margin)
        answers = cascade(outputs, steps.at(read), threshold)
        agreed = share_right(answers[long], everything[long].argmax(axis=1))
        reached, share = share_right(answers, target), share_right(everything, target)
        if agreed >= _MIN_AGREEMENT and reached >= share:
            return margin
    return READ_ALL
