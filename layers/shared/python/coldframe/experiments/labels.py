"""Right labels of answers in an experiment, counted once each."""

from coldframe.experiments.stores import Label, Store
from coldframe.feedback.ids import Answer, Trial
from coldframe.timing import Deadline

RIGHT, WRONG = "right", "wrong"
GAINED, LOST, TIES = "gained", "lost", "ties"
_PATIENCE_S = 5.0


class LabelCounter:
    """Adds labels to the counts of their run. Safe for threads. Raises StoreFails."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, answer: Answer, label: str) -> None:
        """Counts the right label of an answer once, however often it is sent.

        Only labels count that chance chose: callers complain about the arm that they see.
        """
        if answer.trial is not None and answer.is_drawn:
            counts = counts_of(answer.trial, label)
            item = Label(answer.trial.lineup, answer.nonce.hex(), counts)
            self._store.add_label(answer.trial.run, item, Deadline(_PATIENCE_S))

    def remove(self, answer: Answer) -> None:
        """Takes the label of an answer out of the counts."""
        if answer.trial is not None and answer.is_drawn:
            self._store.remove_label(answer.trial.run, answer.nonce.hex(), Deadline(_PATIENCE_S))


def counts_of(trial: Trial, label: str) -> dict[str, int]:
    """Counts that a label adds. An arm that abstained is not right."""
    is_right = trial.label == label
    counts = {f"{trial.arm}/{RIGHT if is_right else WRONG}": 1}
    if trial.is_compared:
        other_is_right = trial.other == label
        name = TIES if other_is_right == is_right else GAINED if other_is_right else LOST
        counts[name] = 1
    return counts
