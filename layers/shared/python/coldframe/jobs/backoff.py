"""Pauses before further attempts. Pure."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from coldframe.jobs.ports import Unavailable

_LONGEST_S = 43_200  # the longest that SQS hides a message: 12 hours
_FIRM_ATTEMPTS = 8
_FIRM_PAUSE_S = 0.05

T = TypeVar("T")


class RetryPolicy(Struct, frozen=True):
    """Limits of attempts, and the pauses between.

    attempts: failed attempts after which a message has failed. failures: attempts stopped by a failing
    service, after which a message has failed as well; the pauses of that many attempts total at least four
    hours.
    first_s, longest_s: pause after the first attempt, and the longest pause; each pause is doubled.
    """

    attempts: int = 6
    failures: int = 100
    first_s: float = 2.0
    longest_s: float = 300.0

    def delay_s(self, received: int, jitter: Callable[[], float]) -> int:
        """Whole seconds until the next attempt. received: deliveries so far. jitter: from 0 to 1.

        Between half and all of the exponential pause, so messages that failed together come back at different
        times.
        Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ ("equal jitter").
        """
        pause_s = min(self.longest_s, self.first_s * 2.0 ** min(received - 1, 30))
        return min(_LONGEST_S, max(1, round(pause_s * (1 + jitter()) / 2)))


def firmly(call: Callable[[], T], pause: Callable[[float], None], jitter: Callable[[], float]) -> T:
    """Repeats an idempotent call for some seconds. Raises Unavailable.

    pause: waits for a number of seconds.
    """
    for attempt in range(_FIRM_ATTEMPTS - 1):
        try:
            return call()
        except Unavailable:
            pause(_FIRM_PAUSE_S * 2.0**attempt * jitter())
    return call()
