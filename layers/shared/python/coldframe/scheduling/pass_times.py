"""How long a pass takes, by its rows and tokens: learnt from every pass, robust against single slow ones.

A pass takes `pace × shape`. The shape says how sizes compare, and changes slowly. The pace is one number for
all sizes, and changes within some passes: a neighbour on the machine slows all sizes alike.
"""

import math
from typing import Protocol

_FIXED_S, _TOKEN_S = 4e-4, 7e-5  # of MiniLM on a core; only the beginning, passes correct it
_PACE_WEIGHT, _SHAPE_WEIGHT, _DEVIATION_WEIGHT = 0.15, 0.05, 0.05  # of the latest pass
_MOST = math.log(2)  # one pass says at most "twice as slow as expected": it may have been interrupted
_DEVIATION = 0.05  # until passes are compared with what was expected of them
_MARGIN_DEVIATIONS, _LARGEST_MARGIN = 2.0, 2.0
_WORTH_IT = 0.98  # a larger pass has to be quicker for each row by this factor
_REMEMBERED = 32  # passes until sizes are compared anew


class PassModel(Protocol):
    """What a scheduler asks about passes of one encoder."""

    @property
    def pace(self) -> float:
        """Seconds that a second of `shape_s` takes at present."""

    @property
    def margin(self) -> float:
        """At least 1: what a promise adds, for passes that take longer than predicted."""

    def shape_s(self, rows: int, tokens: int) -> float:
        """Seconds of a pass at a pace of 1."""

    def best_rows(self, length: int, budget_tokens: int) -> int:
        """How many rows of `length` tokens make the best pass: within the budget, but one at least."""

    def observe(self, rows: int, tokens: int, seconds: float) -> None:
        """Learns from a pass."""


class PassTimes:
    """A `PassModel` that learns. Of one thread at a time."""

    def __init__(self) -> None:
        self._log_pace = 0.0
        self._deviation = _DEVIATION
        self._log_ratios: dict[tuple[int, int], float] = {}  # by size: measured beside _first_guess_s
        self._seen: dict[tuple[int, int], int] = {}  # passes of a size
        self._shapes: dict[tuple[int, int], float] = {}
        self._best: dict[tuple[int, int], int] = {}
        self._observed = 0

    @property
    def pace(self) -> float:
        return math.exp(self._log_pace)

    @property
    def margin(self) -> float:
        """By the mean deviation, as TCP's retransmission timeout is: Jacobson 1988."""
        return min(_LARGEST_MARGIN, math.exp(_MARGIN_DEVIATIONS * self._deviation))

    def shape_s(self, rows: int, tokens: int) -> float:
        """Between two sizes that were measured, the ratio to the first guess is between theirs."""
        size = (rows, round(tokens / rows))
        found = self._shapes.get(size)
        if found is None:
            found = self._shapes[size] = _first_guess_s(*size) * math.exp(self._log_ratio(*size))
        return found

    def best_rows(self, length: int, budget_tokens: int) -> int:
        """The smallest size that no larger one beats, in time for each row, by more than two hundredths."""
        most = max(1, budget_tokens // length)
        found = self._best.get((length, most))
        if found is None:
            sizes = [1 << power for power in range(most.bit_length())]
            row_s = [self.shape_s(size, size * length) / size for size in sizes]
            quickest_s = min(row_s)
            found = next(
                size for size, taken_s in zip(sizes, row_s, strict=True) if taken_s * _WORTH_IT <= quickest_s
            )
            self._best[length, most] = found
        return found

    def observe(self, rows: int, tokens: int, seconds: float) -> None:
        length = round(tokens / rows)
        off = math.log(max(seconds, 1e-7) / (self.shape_s(rows, tokens) * self.pace))
        self._deviation += _DEVIATION_WEIGHT * (min(abs(off), 2 * _MOST) - self._deviation)
        off = max(-_MOST, min(_MOST, off))
        self._log_pace += _PACE_WEIGHT * off
        node = _node(rows, length)
        known = self._near(*node)
        self._seen[node] = seen = self._seen.get(node, 0) + 1
        self._log_ratios[node] = known + max(_SHAPE_WEIGHT, 1 / (seen + 1)) * off
        self._observed += 1
        if self._observed % _REMEMBERED == 0:
            self._forget()

    def calibrate(self, rows: int, length: int, seconds: float) -> None:
        """Takes a size as measured with care, on a machine that does nothing else."""
        self._log_ratios[_node(rows, length)] = math.log(max(seconds, 1e-7) / _first_guess_s(rows, length))
        self._forget()

    def _forget(self) -> None:
        self._shapes.clear()
        self._best.clear()

    def _log_ratio(self, rows: int, length: int) -> float:
        """Between the powers of two around `rows`."""
        place, of_length = math.log2(rows), _node(rows, length)[1]
        low = math.floor(place)
        share = place - low
        below = self._near(low, of_length)
        return below if share == 0 else below + share * (self._near(low + 1, of_length) - below)

    def _near(self, rows: int, length: int) -> float:
        """What is known of a size, else of the most similar one that anything is known of."""
        if (rows, length) in self._log_ratios:
            return self._log_ratios[rows, length]
        if not self._log_ratios:
            return 0.0
        nearest = min(
            self._log_ratios,
            key=lambda node: (abs(node[0] + node[1] / 2 - rows - length / 2), abs(node[1] - length), node),
        )
        return self._log_ratios[nearest]


def _node(rows: int, length: int) -> tuple[int, int]:
    """Sizes that are learnt together: rows to a power of two, length to half of one."""
    return round(math.log2(rows)), round(2 * math.log2(max(1, length)))


def _first_guess_s(rows: int, length: int) -> float:
    return _FIXED_S + _TOKEN_S * rows * length
