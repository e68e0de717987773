"""When a message that failed is tried again. Pure."""

from collections.abc import Callable

from msgspec import Struct

_LONGEST_S = 43_200  # the longest that SQS hides a message: 12 hours


class RetryPolicy(Struct, frozen=True):
    """Bounds of attempts and age, and the pauses between.

    attempts: after so many a message has failed. age_s: since it was sent; then it has failed, too.
    first_s, longest_s: pause after the first attempt, and the longest one; each is doubled.
    """

    attempts: int = 6
    age_s: float = 14_400.0
    first_s: float = 2.0
    longest_s: float = 300.0

    def delay_s(self, received: int, jitter: Callable[[], float]) -> int:
        """Whole seconds until the next attempt. received: how often it was. jitter: from 0 to 1.

        Between half and all of the exponential pause, so that messages that failed together part.
        Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ ("equal jitter").
        """
        pause_s = min(self.longest_s, self.first_s * 2.0 ** min(received - 1, 30))
        return min(_LONGEST_S, max(1, round(pause_s * (1 + jitter()) / 2)))
