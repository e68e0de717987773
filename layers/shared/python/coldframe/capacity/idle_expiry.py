"""Idle times of environments on AWS: seeded draws from published observations (pure)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IdleExpiry:
    """Idle times: each environment draws its own, uniformly between two bounds, in seconds.

    AWS publishes neither bound. The default spans published measurements: at least five minutes, at most 45.
    With equal bounds all environments have the same idle time.
    Sources: https://mikhail.io/2019/08/aws-lambda-cold-starts-after-10-minutes/ (25 to 60 minutes, then
    exactly 10) and https://www.pluralsight.com/resources/blog/cloud/how-long-does-aws-lambda-keep-your-idle-
    functions-around-before-a-cold-start (45 to 60, "sometimes a lot earlier"), read 2026-11-21.
    """

    least_s: float = 300.0
    most_s: float = 2700.0

    def draws(self, seed: int) -> Iterator[float]:
        """Seconds of one environment after another, without end."""
        source = random.Random(seed)
        while True:
            yield source.uniform(self.least_s, self.most_s)


class Keeps:
    """Idle time of each environment of one function, by the environment's number.

    The n-th environment gets the n-th draw, so a simulation with the same seed gives it the same time. A
    second request for an environment returns its first answer. expiry: None leaves idle times to the limits.
    """

    def __init__(self, expiry: IdleExpiry | None = None, seed: int = 0) -> None:
        self._drawn_s: list[float] = []
        self._draws = None if expiry is None else expiry.draws(seed)

    def of(self, environment_id: int) -> float | None:
        """Seconds; None: the limits' time."""
        if self._draws is None:
            return None
        while len(self._drawn_s) <= environment_id:
            self._drawn_s.append(next(self._draws))
        return self._drawn_s[environment_id]
