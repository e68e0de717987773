"""Policy of the shared cache: expected costs of a query, and a circuit breaker. Pure."""

import threading
from collections.abc import Iterable, Sequence
from enum import StrEnum

from coldframe.timing import Clock, MovingAverage


class Policy(StrEnum):
    """The setting: query when it pays, query whenever the store works, never query."""

    ADAPTIVE = "adaptive"
    ALWAYS = "always"
    OFF = "off"


class BreakerState(StrEnum):
    """See `Breaker`."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Breaker:
    """Stops calls to a store that fails, and tests with single calls whether it works again.

    CLOSED     Calls are allowed.
               `max_failures` failures in a row, or a permanent one -> OPEN
    OPEN       No call is allowed for the cooldown.
               the first `allow` after it -> HALF_OPEN; that call is the probe
    HALF_OPEN  No further call is allowed until the probe reports. A probe that never
               reports is given up after another cooldown: the next `allow` probes.
               success -> CLOSED; failure -> OPEN, for twice as long, at most `max_cooldown_s`

    Safe for threads: a lock guards each transition, so there is only one probe.
    """

    def __init__(
        self,
        clock: Clock,
        max_failures: int = 3,
        cooldown_s: float = 1.0,
        max_cooldown_s: float = 60.0,
    ) -> None:
        self._clock = clock
        self._max_failures = max_failures
        self._first_cooldown_s = cooldown_s
        self._max_cooldown_s = max_cooldown_s
        self._cooldown_s = cooldown_s
        self._failures = 0
        self._since_s = 0.0
        self._lock = threading.Lock()
        self.state = BreakerState.CLOSED

    def allow(self) -> bool:
        """Whether a call may be made now. The caller then reports its result."""
        with self._lock:
            if self.state is BreakerState.CLOSED:
                return True
            if self._clock() - self._since_s < self._cooldown_s:
                return False
            self._enter(BreakerState.HALF_OPEN)
            return True

    def success(self) -> None:
        """Reports a call that was answered."""
        with self._lock:
            self._failures = 0
            self._cooldown_s = self._first_cooldown_s
            self.state = BreakerState.CLOSED

    def failure(self, permanent: bool = False) -> None:
        """Reports a call that failed. permanent: further calls fail until somebody changes something."""
        with self._lock:
            if self.state is BreakerState.OPEN:
                return  # from a call that began before the breaker opened
            self._failures += 1
            if self.state is BreakerState.HALF_OPEN:
                self._cooldown_s = min(2 * self._cooldown_s, self._max_cooldown_s)
            elif not permanent and self._failures < self._max_failures:
                return
            self._enter(BreakerState.OPEN)

    def _enter(self, state: BreakerState) -> None:
        self.state = state
        self._since_s = self._clock()


# Initial averages. Lookup and set-up are set high, so a cold environment computes: a wrong guess then costs a
# lookup, not a request.
_PRIOR_TOKENS_PER_CHARACTER = 0.25
_PRIOR_LOOKUP_MS = 10.0
_PRIOR_HIT_SHARE = 1.0
_PRIOR_SET_UP_MS = 400.0  # importing boto3, a client, a connection
_LOWEST_HIT_SHARE = 0.1  # a request that costs ten lookups always queries


class Costs:
    """Costs and expected savings of a lookup, in milliseconds, as measured so far.

    A query costs `lookup + (1 - hit share) × compute`; without it the cost is `compute`. So it pays when
    `lookup < hit share × compute`.
    Safe for threads, as averages are: see `MovingAverage`.
    """

    def __init__(
        self,
        max_text_tokens: int,
        keys_per_call: int,
        ms_per_token: MovingAverage,
        set_up_ms: float = _PRIOR_SET_UP_MS,
    ) -> None:
        """max_text_tokens: longer texts are cut to this length.

        ms_per_token: speed of the encoder, as measured by `Model`.
        """
        self._max_text_tokens = max_text_tokens
        self._keys_per_call = keys_per_call
        self._ms_per_token = ms_per_token
        self._set_up_ms = set_up_ms
        self.forget()

    def forget(self) -> None:
        """Discards all averages: they were measured in another environment."""
        self._tokens_per_character = MovingAverage(_PRIOR_TOKENS_PER_CHARACTER)
        self._ms_per_token.forget()
        self._call_ms = MovingAverage(_PRIOR_LOOKUP_MS)
        self._hit_share = MovingAverage(_PRIOR_HIT_SHARE)

    def compute_ms(self, characters: Iterable[int]) -> float:
        """Expected time to tokenize and encode texts of these lengths."""
        tokens = (min(n * self._tokens_per_character.value, self._max_text_tokens) + 2 for n in characters)
        return sum(tokens) * self._ms_per_token.value

    def lookup_ms(self, keys: int, ready: bool) -> float:
        """Expected time to look up `keys`, including the set-up of a store that is not ready."""
        calls = -(-keys // self._keys_per_call)
        return calls * self._call_ms.value + (0.0 if ready else self._set_up_ms)

    def worth_asking(self, characters: Iterable[int], keys: int, ready: bool) -> bool:
        """Whether looking up these keys is expected to be quicker than computing their texts."""
        hit_share = max(self._hit_share.value, _LOWEST_HIT_SHARE)
        return self.lookup_ms(keys, ready) < hit_share * self.compute_ms(characters)

    def computed(self, characters: Sequence[int], tokens: int) -> None:
        """Records texts of these lengths as computed; the encoder read `tokens` of those without a cached
        embedding.
        """
        # Long texts are cut, so their characters do not predict their tokens.
        if sum(characters) and max(characters) * _PRIOR_TOKENS_PER_CHARACTER < self._max_text_tokens:
            self._tokens_per_character.add(tokens / sum(characters))

    def looked_up(self, keys: int, spent_ms: float) -> None:
        """Records the time of a lookup of `keys`, whether it was answered or not."""
        self._call_ms.add(spent_ms / -(-keys // self._keys_per_call))

    def hit(self, share: float) -> None:
        """Records the share of texts that need no encoding after a lookup."""
        self._hit_share.add(share)

    def skipped(self) -> None:
        """Records that no lookup was made: averages about lookups become older."""
        self._call_ms.fade()
        self._hit_share.fade()
