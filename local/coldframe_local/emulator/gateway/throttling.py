"""How many requests a second a route lets through. Pure."""

from __future__ import annotations

from coldframe.timing import Clock
from coldframe_local.emulator.gateway.definitions import Throttling


class TokenBucket:
    """Lets `burst` requests through at once, and `rate_per_s` on average."""

    def __init__(self, throttling: Throttling, clock: Clock) -> None:
        self._throttling = throttling
        self._clock = clock
        self._tokens = float(throttling.burst)
        self._filled_s = clock()

    def take(self) -> bool:
        """Whether this request is let through."""
        now_s = self._clock()
        refilled = self._tokens + (now_s - self._filled_s) * self._throttling.rate_per_s
        self._tokens, self._filled_s = min(refilled, float(self._throttling.burst)), now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
