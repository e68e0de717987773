"""How long AWS keeps idle environments: seeded draws from what was observed (pure)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IdleExpiry:
    """Each environment is kept idle for a time of its own, drawn evenly between two bounds, in seconds.

    AWS publishes neither bound. The default spans what others measured: five minutes at the least, 45 at the
    most. With equal bounds every environment is kept equally long.
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
    """How long each environment of one function is kept idle, by its number.

    The n-th environment gets the n-th draw, so that a simulation of the same seed gives it the same. expiry:
    None leaves it to the limits. An environment that is asked for again gets the same answer.
    """

    def __init__(self, expiry: IdleExpiry | None = None, seed: int = 0) -> None:
        self._drawn_s: list[float] = []
        self._draws = None if expiry is None else expiry.draws(seed)

    def of(self, environment_id: int) -> float | None:
        """Seconds; None: as long as the limits say."""
        if self._draws is None:
            return None
        while len(self._drawn_s) <= environment_id:
            self._drawn_s.append(next(self._draws))
        return self._drawn_s[environment_id]
