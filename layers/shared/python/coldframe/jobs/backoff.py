"""When something that failed is tried again. Pure."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from coldframe.jobs.ports import Unavailable

_LONGEST_S = 43_200  # the longest that SQS hides a message: 12 hours
_FIRM_ATTEMPTS = 8
_FIRM_PAUSE_S = 0.05

T = TypeVar("T")


class RetryPolicy(Struct, frozen=True):
    """Bounds of attempts, and the pauses between.

    attempts: after so many a message has failed. failures: attempts that met a failing service; after so many
    it has failed, too: with the pauses after four hours at the earliest.
    first_s, longest_s: pause after the first attempt, and the longest one; each is doubled.
    """

    attempts: int = 6
    failures: int = 100
    first_s: float = 2.0
    longest_s: float = 300.0

    def delay_s(self, received: int, jitter: Callable[[], float]) -> int:
        """Whole seconds until the next attempt. received: how often it was. jitter: from 0 to 1.

        Between half and all of the exponential pause, so that messages that failed together part.
        Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ ("equal jitter").
        """
        pause_s = min(self.longest_s, self.first_s * 2.0 ** min(received - 1, 30))
        return min(_LONGEST_S, max(1, round(pause_s * (1 + jitter()) / 2)))


def firmly(call: Callable[[], T], pause: Callable[[float], None], jitter: Callable[[], float]) -> T:
    """A call that may be repeated without another effect, tried for seconds. Raises Unavailable.

    pause: waits so many seconds.
    """
    for attempt in range(_FIRM_ATTEMPTS - 1):
        try:
            return call()
        except Unavailable:
            pause(_FIRM_PAUSE_S * 2.0**attempt * jitter())
    return call()
