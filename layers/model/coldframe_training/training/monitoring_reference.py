"""The reference of the monitor: answers of `auto` to validation rows, as serving would count them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from coldframe.model.files import AUTO
from coldframe.model.heads import share_more_usual
from coldframe.model.tokenizer import TextWindows
from coldframe.monitoring.recorder import Answer
from coldframe.monitoring.reference import Reference, make_reference
from coldframe_training.embeddings.embed import ServedEncoder
from coldframe_training.embeddings.matrices import to_vectors
from coldframe_training.out_of_distribution.strangeness import thin
from coldframe_training.training.train_estimator import HeldOut
from coldframe_training.training_data.samples import Embedded, Task


def reference_of(
    task: Task, train: Embedded, held_out: HeldOut, strangeness: NDArray[np.float64], encoder: ServedEncoder
) -> Reference:
    """The reference of a model. strangeness: of the validation rows by their embeddings, (n,)."""
    truth = task.train.target[task.validation].tolist()
    windows = TextWindows(encoder.folder, encoder.facts)
    fragments = [windows.count_fragments(ids) for ids in held_out.tokens]
    answers = zip(_answers(task, train, held_out, strangeness, fragments), truth, strict=True)
    version, dimension = encoder.manifest.version, encoder.facts.dimension
    return make_reference(AUTO, task.labels, version, dimension, answers)


def _answers(
    task: Task,
    train: Embedded,
    held_out: HeldOut,
    strangeness: NDArray[np.float64],
    fragments: list[int],
) -> Iterator[Answer]:
    """Answers as serving counts them: the score of the part that answers, and short texts' embeddings."""
    by_tokens, by_embedding = (_shares_more_usual(values) for values in (held_out.strangeness, strangeness))
    vectors = to_vectors(train.as_sent[task.validation])
    for row, windows in enumerate(train.windows_as_sent(task.validation)):
        is_alone = bool(held_out.alone[row])
        is_embedded = not is_alone and len(windows.tokens) == 1
        yield Answer(
            label=int(held_out.answers[row].argmax()),
            probability=float(held_out.answers[row].max()),
            tokens=len(held_out.tokens[row]),
            unknown=held_out.unknown[row],
            out_of_distribution=(by_tokens if is_alone else by_embedding)[row],
            embedding=vectors[row] if is_embedded else None,
            fragments=fragments[row],
        )


def _shares_more_usual(strangeness: NDArray[np.float64]) -> list[float]:
    """Score of each validation row among all of them."""
    usual = thin(strangeness).tolist()
    return [share_more_usual(value, usual) for value in strangeness.tolist()]
