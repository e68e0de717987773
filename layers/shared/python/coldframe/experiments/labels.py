"""Right labels of answers in an experiment, counted once each."""

from collections.abc import Mapping, Sequence

from coldframe.experiments.bandit import Key, Rewards, reward_of
from coldframe.experiments.stores import Label, Store
from coldframe.feedback.ids import Answer, Trial
from coldframe.timing import Deadline

RIGHT, WRONG = "right", "wrong"
GAINED, LOST, TIES = "gained", "lost", "ties"
PERIOD_S = 86_400
"""Length of a bandit's period: older rewards weigh less, period by period."""
_REWARDS = "rewards"
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
            if answer.trial.share:
                counts |= rewards_of(answer.trial, label, answer.moment_s)
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


def rewards_of(trial: Trial, label: str, moment_s: int) -> dict[str, int]:
    """Rewards of a bandit's arm that a label adds, in the period of the answer."""
    rewards = reward_of(float(trial.label == label), trial.share)
    place = f"{_REWARDS}/{moment_s // PERIOD_S}/{trial.arm}"
    numbers = {"labels": rewards.labels, "reward": rewards.reward_ppm, "loss": rewards.loss_ppm}
    return {f"{place}/{name}": number for name, number in numbers.items() if number}


def read_rewards(counts: Mapping[str, int], arms: Sequence[str]) -> dict[Key, Rewards]:
    """Rewards in the sums of labels, by period and arm."""
    keys = {tuple(name.split("/")[1:3]) for name in counts if name.startswith(f"{_REWARDS}/")}
    rewards = {}
    for period, arm in keys:
        numbers = (
            counts.get(f"{_REWARDS}/{period}/{arm}/{name}", 0) for name in ("labels", "reward", "loss")
        )
        rewards[Key(0, int(period), arms.index(arm))] = Rewards(*numbers)
    return rewards
