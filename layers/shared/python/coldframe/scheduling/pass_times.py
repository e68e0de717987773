"""How long a pass takes, by its rows and tokens: learnt from every pass, robust against single slow ones.

A pass takes `pace × shape`. The shape says how sizes compare, and changes slowly. The pace is one number for
all sizes, and changes within some passes: a neighbour on the machine slows all sizes alike.
"""

import math
from typing import Protocol

_FIXED_S, _TOKEN_S = 4e-4, 7e-5  # MiniLM on a core; only an initial value, passes correct it
_PACE_WEIGHT, _SHAPE_WEIGHT, _DEVIATION_WEIGHT = 0.15, 0.05, 0.05  # weight of the latest pass
_MOST = math.log(2)  # one pass says at most "twice as slow as expected": it may have been interrupted
_DEVIATION = 0.05  # until passes are compared with their predictions
_MARGIN_DEVIATIONS, _LEAST_MARGIN, _LARGEST_MARGIN = 3.0, 1.3, 2.5
_WORTH_IT = 0.98  # a larger pass has to be quicker per row by this factor
_CALIBRATED = 10  # a calibrated measurement counts as this many passes
_REMEMBERED = 32  # passes between comparisons of sizes, which take longer than one prediction


class PassModel(Protocol):
    """Predictions about passes of one encoder.

    pace: seconds that a second of `shape_s` takes at present.
    margin: at least 1; a promise multiplies by it, for passes that take longer than predicted.
    """

    pace: float
    margin: float

    def shape_s(self, rows: int, tokens: int) -> float:
        """Seconds of a pass at a pace of 1."""

    def best_rows(self, length: int, budget_tokens: int) -> int:
        """Number of rows of `length` tokens in the best pass: within the budget, but at least one."""

    def observe(self, rows: int, tokens: int, seconds: float) -> None:
        """Learns from a pass."""


class PassTimes:
    """A `PassModel` that learns. Not safe for threads.

    The margin comes from the mean deviation, like TCP's retransmission timeout: Jacobson 1988.
    """

    def __init__(self) -> None:
        self.pace = 1.0
        self._deviation = _DEVIATION
        self.margin = _margin(self._deviation)
        self._log_ratios: dict[tuple[int, int], float] = {}  # by size: measured time beside _first_guess_s
        self._nearest: dict[tuple[int, int], float] = {}
        self._seen: dict[tuple[int, int], int] = {}  # passes by size
        self._shapes: dict[tuple[int, int], float] = {}
        self._best: dict[tuple[int, int], int] = {}
        self._observed = 0

    def shape_s(self, rows: int, tokens: int) -> float:
        """Between two measured sizes, the ratio to the first guess lies between their ratios."""
        size = (rows, round(tokens / rows))
        seconds = self._shapes.get(size)
        if seconds is None:
            seconds = self._shapes[size] = _first_guess_s(*size) * math.exp(self._log_ratio(*size))
        return seconds

    def best_rows(self, length: int, budget_tokens: int) -> int:
        """The smallest size whose time per row no larger one beats by more than two hundredths."""
        most = max(1, budget_tokens // length)
        rows_of_best = self._best.get((length, most))
        if rows_of_best is None:
            sizes = [1 << power for power in range(most.bit_length())]
            row_s = [self.shape_s(size, size * length) / size for size in sizes]
            quickest_s = min(row_s)
            rows_of_best = next(
                size for size, taken_s in zip(sizes, row_s, strict=True) if taken_s * _WORTH_IT <= quickest_s
            )
            self._best[length, most] = rows_of_best
        return rows_of_best

    def observe(self, rows: int, tokens: int, seconds: float) -> None:
        length = round(tokens / rows)
        off = math.log(max(seconds, 1e-7) / (self.shape_s(rows, tokens) * self.pace))
        self._deviation += _DEVIATION_WEIGHT * (min(abs(off), 2 * _MOST) - self._deviation)
        self.margin = _margin(self._deviation)
        off = max(-_MOST, min(_MOST, off))
        self.pace *= math.exp(_PACE_WEIGHT * off)
        node = _node(rows, length)
        ratio = self._near(*node)
        self._seen[node] = count = self._seen.get(node, 0) + 1
        self._log_ratios[node] = ratio + max(_SHAPE_WEIGHT, 1 / (count + 1)) * off
        self._shapes.clear()
        self._observed += 1
        if self._observed % _REMEMBERED == 0:
            self._forget()

    def calibrate(self, rows: int, length: int, seconds: float) -> None:
        """Learns a size from a calibration, on a machine without other work."""
        node = _node(rows, length)
        self._log_ratios[node] = math.log(max(seconds, 1e-7) / _first_guess_s(rows, length))
        self._seen[node] = _CALIBRATED
        self._forget()

    def _forget(self) -> None:
        self._shapes.clear()
        self._best.clear()
        self._nearest.clear()

    def _log_ratio(self, rows: int, length: int) -> float:
        """Interpolates between the powers of two around `rows`."""
        place, of_length = math.log2(rows), _node(rows, length)[1]
        low = math.floor(place)
        share = place - low
        below = self._near(low, of_length)
        return below if share == 0 else below + share * (self._near(low + 1, of_length) - below)

    def _near(self, rows: int, length: int) -> float:
        """Log ratio of a size, else of the most similar measured size."""
        node = (rows, length)
        ratio = self._log_ratios.get(node, self._nearest.get(node))
        if ratio is None:
            nearest = min(self._log_ratios, key=lambda other: _distance(node, other), default=node)
            ratio = self._nearest[node] = self._log_ratios.get(nearest, 0.0)
        return ratio


def _distance(one: tuple[int, int], other: tuple[int, int]) -> tuple[float, int]:
    """Distance of sizes: first by tokens, then by lengths."""
    length = other[1] - one[1]
    return abs(other[0] - one[0] + length / 2), abs(length)


def _margin(deviation: float) -> float:
    return min(_LARGEST_MARGIN, max(_LEAST_MARGIN, math.exp(_MARGIN_DEVIATIONS * deviation)))


def _node(rows: int, length: int) -> tuple[int, int]:
    """Sizes that are learnt together: rows to a power of two, length to half of one."""
    return round(math.log2(rows)), round(2 * math.log2(max(1, length)))


def _first_guess_s(rows: int, length: int) -> float:
    return _FIXED_S + _TOKEN_S * rows * length
