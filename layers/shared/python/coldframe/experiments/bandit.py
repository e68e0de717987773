"""Bandits: shares of arms that follow their rewards, from counts that come late and in any order.

Exp3: Auer, Cesa-Bianchi, Freund & Schapire 2002, The nonstochastic multiarmed bandit problem, with losses.
Thompson sampling: Russo, Van Roy, Kazerouni, Osband & Wen 2018, arXiv 1707.02038. Both forget old periods:
Garivier & Moulines 2011, arXiv 0805.3415.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

_PPM = 1_000_000
_EDGES = (0.5, 0.75, 0.9)  # of the estimator's confidence
_GRID = 300  # rewards at which posteriors are compared
_DEVIATIONS = 6.0
_LEAST_WEIGHT = 0.01  # periods that weigh less are forgotten

BUCKETS = len(_EDGES) + 1
"""Number of buckets of the estimator's confidence."""


class Method(StrEnum):
    """Ways to turn rewards into shares."""

    EXP3 = "exp3"
    THOMPSON = "thompson"


class Key(NamedTuple):
    """Place of a reward. bucket: of the confidence; period: of the answer's moment; arm: its position."""

    bucket: int
    period: int
    arm: int


@dataclass(frozen=True)
class Rewards:
    """Counts of labelled answers, as whole numbers, so that sums are exact in any order.

    reward_ppm: sum of rewards in millionths. loss_ppm: sum of losses in millionths, each divided by the
    probability with which the arm was chosen.
    """

    labels: int = 0
    reward_ppm: int = 0
    loss_ppm: int = 0

    def __add__(self, other: Rewards) -> Rewards:
        return Rewards(
            self.labels + other.labels, self.reward_ppm + other.reward_ppm, self.loss_ppm + other.loss_ppm
        )

    def __neg__(self) -> Rewards:
        return Rewards(-self.labels, -self.reward_ppm, -self.loss_ppm)


Counts = Mapping[Key, Rewards]


def reward_of(reward: float, probability: float) -> Rewards:
    """Counts of one labelled answer; its negative takes a removed label back.

    reward: 0 to 1; 1 for a right answer. probability: of the arm when it answered, kept with the answer. A
    label that comes after the shares have changed is thus weighted as if it had come at once.
    """
    return Rewards(1, round(_PPM * reward), round(_PPM * (1.0 - reward) / probability))


def bucket_of(confidence: float | None) -> int:
    """Bucket of the estimator's highest probability; without one, the lowest bucket."""
    return bisect_right(_EDGES, confidence or 0.0)


def merged(parts: Iterable[Counts]) -> dict[Key, Rewards]:
    """Sum of counts from several environments, in whatever order."""
    sums: dict[Key, Rewards] = {}
    for part in parts:
        for key, rewards in part.items():
            sums[key] = sums.get(key, Rewards()) + rewards
    return sums


@dataclass(frozen=True)
class Bandit:
    """Shares of arms by their rewards.

    floor: smallest share of an arm, so that each stays in the trial. memory: weight of a period's rewards
    one period later; 1: nothing is forgotten.
    """

    method: Method
    floor: float = 0.02
    memory: float = 0.8

    def shares(self, counts: Counts, arms: int, period: int, bucket: int = 0) -> list[float]:
        """Shares of the arms for a bucket, whose sum is 1.

        period: the present one. Rewards of later periods, by a clock that is ahead, count as present ones.
        """
        sums = [self._sums(counts, bucket, period, arm) for arm in range(arms)]
        raw = _exp3(sums) if self.method == Method.EXP3 else _thompson(sums)
        floor = min(self.floor, 1.0 / arms)
        return [floor + (1.0 - arms * floor) * share for share in raw]

    def oldest(self, period: int) -> int:
        """The oldest period whose rewards count in `period`; counts of older ones may be deleted."""
        if self.memory >= 1:
            return 0
        return max(0, period - math.ceil(math.log(_LEAST_WEIGHT) / math.log(self.memory)))

    def _sums(self, counts: Counts, bucket: int, period: int, arm: int) -> _Sums:
        oldest, labels, reward, loss = self.oldest(period), 0.0, 0.0, 0.0
        for key, rewards in counts.items():
            if (key.bucket, key.arm) == (bucket, arm) and key.period >= oldest:
                weight = self.memory ** max(0, period - key.period)
                labels += weight * rewards.labels
                reward += weight * rewards.reward_ppm / _PPM
                loss += weight * rewards.loss_ppm / _PPM
        return _Sums(max(0.0, labels), max(0.0, reward), max(0.0, loss))


class _Sums(NamedTuple):
    """Rewards of one arm, weighted by their age; no sum is below 0, even if a removal comes first."""

    labels: float
    reward: float
    loss: float


def _exp3(sums: Sequence[_Sums]) -> list[float]:
    labels = sum(arm.labels for arm in sums)
    rate = math.sqrt(2 * math.log(len(sums)) / (len(sums) * max(1.0, labels)))
    least = min(arm.loss for arm in sums)
    weights = [math.exp(-rate * (arm.loss - least)) for arm in sums]
    return [weight / sum(weights) for weight in weights]


def _thompson(sums: Sequence[_Sums]) -> list[float]:
    """Probabilities that each arm is the best, by their posteriors on a grid of rewards."""
    shapes = [(1.0 + arm.reward, 1.0 + max(0.0, arm.labels - arm.reward)) for arm in sums]
    ends = [_likely(*shape) for shape in shapes]
    low, high = min(end for end, _ in ends), max(end for _, end in ends)
    grid = [low + (high - low) * (place + 0.5) / _GRID for place in range(_GRID)]
    densities = [_masses(grid, *shape) for shape in shapes]
    below = [[mass_below + mass / 2 for mass_below, mass in _running(masses)] for masses in densities]
    best = [
        sum(
            mass * math.prod(others[place] for other, others in enumerate(below) if other != arm)
            for place, mass in enumerate(densities[arm])
        )
        for arm in range(len(sums))
    ]
    return [share / sum(best) for share in best]


def _likely(right: float, wrong: float) -> tuple[float, float]:
    """Ends between which nearly all of a beta distribution lies."""
    total = right + wrong
    mean, deviation = right / total, math.sqrt(right * wrong / (total**2 * (total + 1)))
    return max(0.0, mean - _DEVIATIONS * deviation), min(1.0, mean + _DEVIATIONS * deviation)


def _masses(grid: Sequence[float], right: float, wrong: float) -> list[float]:
    """Probabilities of the grid's points by a beta distribution."""
    logs = [(right - 1) * math.log(value) + (wrong - 1) * math.log1p(-value) for value in grid]
    most = max(logs)
    masses = [math.exp(value - most) for value in logs]
    total = sum(masses)
    return [mass / total for mass in masses]


def _running(masses: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Each mass, after the sum of all earlier ones."""
    return zip(accumulate(masses, initial=0.0), masses, strict=False)
