"""The token budget of a pass: additive increase, multiplicative decrease.

Source: Clipper, Crankshaw et al. 2017, section 4.3.1.
"""

_STEP_TOKENS = 64
_DECREASE = 0.9
_LOWEST_TOKENS = 64


class TokenBudget:
    """Grows while full passes end within the objective, and shrinks by a tenth when a pass does not."""

    def __init__(self, tokens: int, max_tokens: int, objective_s: float) -> None:
        self._max_tokens = max_tokens
        self._objective_s = objective_s
        self._tokens = float(min(tokens, max_tokens))

    @property
    def tokens(self) -> int:
        return int(self._tokens)

    def observe(self, rows: int, tokens: int, seconds: float) -> None:
        """Learns from a pass.

        A pass of one row is ignored: it could not have been smaller. So is a pass below the budget that ended
        in time.
        """
        if rows == 1:
            return
        if seconds > self._objective_s:
            self._tokens = max(_LOWEST_TOKENS, self._tokens * _DECREASE)
        elif tokens + tokens // rows > self._tokens:  # one more row would have exceeded the budget
            self._tokens = min(self._max_tokens, self._tokens + _STEP_TOKENS)
