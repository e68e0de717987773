"""The example: 20 Newsgroups as a task, validated on whole discussions."""

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit

from layers.model.data import Split, load_split, threads_of
from layers.model.samples import SEED, Rows, Samples, Task


def load_task() -> Task:
    """Both splits; a fifth of the discussions of the training split is for validation."""
    train, test = load_split("train"), load_split("test")
    fit, validation = held_out_split(threads_of(train.full))
    return Task(train.labels, _samples(train), fit, validation, _samples(test))


def _samples(split: Split) -> Samples:
    return Samples({"stripped": split.stripped, "full": split.full}, split.target)


def held_out_split(threads: NDArray[np.int64]) -> tuple[Rows, Rows]:
    """Rows to train on, and those of a fifth of the discussions to validate on."""
    splitter = GroupShuffleSplit(1, test_size=0.2, random_state=SEED)
    fit, validation = next(splitter.split(threads, groups=threads))
    return fit, validation
