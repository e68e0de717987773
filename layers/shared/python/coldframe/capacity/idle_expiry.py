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
