"""Measures pass times by size on this device, before the first request."""

from collections.abc import Callable, Sequence

from coldframe.scheduling.limits import Limits
from coldframe.scheduling.pass_times import PassTimes
from coldframe.timing import Clock

_LENGTHS = (8, 32, 128)  # `PassTimes` interpolates between them, and learns
_ROUNDS = 2
_AT_MOST_S = 0.5  # no further round begins after this
_LARGEST_TOKENS = 512  # where such a pass is quick, larger ones are measured, too
_QUICK_S = 0.005
_A_TOKEN = 2000  # any word serves


def calibrate(
    times: PassTimes, encode: Callable[[Sequence[list[int]]], object], limits: Limits, clock: Clock
) -> None:
    """Measures sizes in powers of two, in turns, so a busy moment affects all sizes. The quickest counts."""

    def measure(rows: int, length: int) -> float:
        batch = [[_A_TOKEN] * length] * rows
        began_s = clock()
        encode(batch)
        return clock() - began_s

    measure(1, _LENGTHS[0])  # the first pass initialises the session
    is_quick = measure(_LARGEST_TOKENS // 64, 64) < _QUICK_S
    largest = limits.max_budget_tokens if is_quick else _LARGEST_TOKENS
    sizes = [(1 << power, length) for length in _LENGTHS for power in range((largest // length).bit_length())]
    quickest_s = dict.fromkeys(sizes, float("inf"))
    ends_s = clock() + _AT_MOST_S
    for number in range(_ROUNDS):
        if number and clock() > ends_s:
            break
        for size in sizes:
            quickest_s[size] = min(quickest_s[size], measure(*size))
    for (rows, length), taken_s in quickest_s.items():
        times.calibrate(rows, length, taken_s)
