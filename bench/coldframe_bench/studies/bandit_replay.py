"""Replay of documents for bandits: arms that drift, labels that are few and late, and the regret."""

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.experiments.bandit import BUCKETS, Bandit, Key, Method, Rewards, bucket_of, reward_of

_LENGTH = 30_000  # answers of a replay
_PERIOD = 1_000  # answers
_EVERY = 500  # answers, after which the shares are computed again
_LABELLED = 0.2
_LATEST = 2_000  # answers after which the last label comes
_TWICE = 0.05  # share of labels that are sent twice
_BROKEN = 0.7  # share of its right answers that an arm gives while it is broken

EQUAL = "equal shares"
METHODS = (EQUAL, "exp3", "thompson", "exp3 by confidence", "thompson by confidence")
ESTIMATOR, AUTO = "the estimator alone, and mlp", "auto, and mlp"
SCENES = ("steady arms", "the best arm breaks", "one good arm, which changes", ESTIMATOR, AUTO)


class Answers(NamedTuple):
    """Answers of the arms to n documents.

    right: whether each head is right, (heads, n); the first one is `mlp`. confidence: the estimator's highest
    probability, (n,). estimator, auto: whether each is right, (n,).
    """

    right: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    estimator: NDArray[np.bool_]
    auto: NDArray[np.bool_]

    def arms(self, scene: str) -> NDArray[np.bool_]:
        """Whether each arm of a scene is right, (arms, n)."""
        others = {ESTIMATOR: self.estimator, AUTO: self.auto}
        return np.stack([others[scene], self.right[0]]) if scene in others else self.right


class Regret(NamedTuple):
    """Share of the reward that a bandit misses: of the best single arm, and of the best arm in each part."""

    to_single: float
    to_moving: float


class _Label(NamedTuple):
    """A label on its way. moment: number of answers after which it comes. answer: number of its answer."""

    moment: int
    answer: int
    key: Key
    rewards: Rewards


def replay(answers: Answers, scene: str, method: str, seed: int) -> Regret:
    """The regret of one replay of random documents."""
    dice = np.random.default_rng(seed)
    rows = dice.integers(len(answers.confidence), size=_LENGTH)
    parts = _drifted(answers.arms(scene)[:, rows], scene, dice)
    right = np.concatenate(parts, axis=1)
    is_contextual = method.endswith("confidence")
    buckets = [bucket_of(value) if is_contextual else 0 for value in answers.confidence[rows].tolist()]
    if method == EQUAL:
        arms = dice.integers(len(right), size=_LENGTH)
    else:
        arms = _choose(Bandit(Method(method.partition(" ")[0])), right, buckets, dice)
    reward = right[arms, np.arange(_LENGTH)].sum()
    moving = sum(part.sum(axis=1).max() for part in parts)
    return Regret(float(1 - reward / right.sum(axis=1).max()), float(1 - reward / moving))


def _drifted(right: NDArray[np.bool_], scene: str, dice: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Whether each arm is right, (arms, n) for each third of a replay."""
    parts = np.array_split(right, 3, axis=1)
    if scene == "the best arm breaks":
        best = int(right.sum(axis=1).argmax())
        return [parts[0], _broken(parts[1], [best], dice), parts[2]]
    if scene == "one good arm, which changes":
        every = range(len(right))
        return [_broken(part, [arm for arm in every if arm != good], dice) for good, part in enumerate(parts)]
    return parts


def _broken(right: NDArray[np.bool_], arms: Sequence[int], dice: np.random.Generator) -> NDArray[np.bool_]:
    """Whether each arm is right, if some arms lose right answers."""
    lost = right.copy()
    lost[arms] &= dice.random((len(arms), right.shape[1])) < _BROKEN
    return lost


def _choose(
    bandit: Bandit, right: NDArray[np.bool_], buckets: Sequence[int], dice: np.random.Generator
) -> NDArray[np.int64]:
    """The arm of each answer, (n,)."""
    arms, coming, labelled = np.zeros(_LENGTH, dtype=np.int64), list[_Label](), set[int]()
    counts: dict[Key, Rewards] = {}
    for start in range(0, _LENGTH, _EVERY):
        while coming and coming[0].moment <= start:
            label = heapq.heappop(coming)
            if label.answer not in labelled:  # a label that comes twice is stored once
                labelled.add(label.answer)
                counts[label.key] = counts.get(label.key, Rewards()) + label.rewards
        period = start // _PERIOD
        shares = {
            bucket: bandit.shares(counts, len(right), period, bucket)
            for bucket in (range(BUCKETS) if any(buckets) else (0,))
        }
        ends = {bucket: [*accumulate(chances)] for bucket, chances in shares.items()}
        for answer in range(start, start + _EVERY):
            chances = shares[buckets[answer]]
            place = bisect_right(ends[buckets[answer]], dice.random())
            arm = arms[answer] = min(place, len(chances) - 1)  # a sum may be just below 1
            key = Key(buckets[answer], period, int(arm))
            for label in _labels(answer, key, reward_of(float(right[arm, answer]), chances[arm]), dice):
                heapq.heappush(coming, label)
    return arms


def _labels(answer: int, key: Key, rewards: Rewards, dice: np.random.Generator) -> Iterator[_Label]:
    """Labels of an answer: none, one, or one that is sent twice."""
    number = (dice.random() < _LABELLED) * (1 + (dice.random() < _TWICE))
    for _ in range(number):
        yield _Label(answer + int(dice.integers(1, _LATEST)), answer, key, rewards)
