"""The example: 20 Newsgroups as a task, validated on whole discussions, with its committed settings."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit

from coldframe_training.training.head_trainers import CHOSEN, Parameters
from coldframe_training.training_data.data import Split, load_split, threads_of
from coldframe_training.training_data.samples import SEED, Rows, Samples, Task

DATA_SET = "20newsgroups"  # how it is named in place of a table


class Example(NamedTuple):
    """Task of the example, in the form that `task_of` and `scale_parameters` give a table.

    numbers: numbers of the test rows in the data set's test split, from 1. parameters: by head.
    """

    task: Task
    numbers: list[int]
    parameters: Mapping[str, Parameters]
    seed: int


def load_example() -> Example:
    """The example with the settings of the committed heads.

    Nothing is left out, so that figures compare with everybody's. Of the stripped test documents 215 have no
    text, and 14 repeat one of the training split; in a table both would be faults.
    """
    task = load_task()
    return Example(task, list(range(1, len(task.test.target) + 1)), CHOSEN, SEED)


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
