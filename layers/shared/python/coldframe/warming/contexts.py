"""The past of one level before a slot: its uses, described by several contexts.

A level of k is used in a slot when k environments or more were busy at once in it.
"""

from __future__ import annotations

from collections.abc import Hashable

from coldframe.warming.peaks import Peaks

_HOUR_S, _DAY_S = 3600, 86_400
_LONGEST_GAP = 9_999
_BITS = (1 << 120) - 1
_EXACT_GAP = 32
_FAR = 6

SIDES = 17
"""Number of contexts in `Past.contexts`."""

_SPANS = (8, 30, 120, 480)
RATES = len(_SPANS)
"""Number of rates in `Past.rates`."""


class Past:
    """The past of one level. slot_s: length of a slot. unused: slots before its first use."""

    def __init__(self, slot_s: float, unused: int = 0) -> None:
        self._hour = max(1, round(_HOUR_S / slot_s))
        self._day = max(1, round(_DAY_S / slot_s))
        self._used = bytearray(unused)
        self._bits = 0
        self._gaps = (
            _LONGEST_GAP,
            _LONGEST_GAP,
            _LONGEST_GAP,
        )  # up to now, and before each of the last two uses
        self.uses = 0
        self.rates = [0.0] * RATES
        """Share of slots with a use, over shorter and longer times."""

    def add(self, used: bool) -> None:
        """Adds a slot."""
        for number, span in enumerate(_SPANS):
            # The plain mean while a level is young; otherwise a first use would weigh as much as a whole
            # span.
            self.rates[number] += (used - self.rates[number]) / min(span, len(self._used) + 2)
        self._used.append(used)
        self._bits = (self._bits << 1 | used) & _BITS
        gap, before, _ = self._gaps
        if used:
            self._gaps = (0, gap, before)
            self.uses += 1
        else:
            self._gaps = (min(gap + 1, _LONGEST_GAP), *self._gaps[1:])

    def contexts(self, level: int, peaks: Peaks) -> tuple[Hashable, ...]:
        """Contexts of the next slot; None for a context without data. level: the level of this past."""
        bits, now = self._bits, len(self._used)
        gap, before, earlier = map(_about, self._gaps)
        last = bits & 1
        return (
            # Time since the last use, and the gaps before it: a timer's traffic, and how a burst ends.
            gap,
            (gap, before),
            (gap, before, earlier),
            # The latest slots.
            bits & 0xF,
            bits & 0xFF,
            bits & 0xFFF,
            # The clock: the minute of the hour, an hour ago, and round numbers of slots ago.
            now % self._hour if self._hour > 1 else None,
            self._around(self._hour),
            (last, bits >> 9 & 1, bits >> 14 & 1, bits >> 19 & 1, bits >> 29 & 1),
            # Rates of use.
            (last, (bits & (1 << 30) - 1).bit_count()),
            (bits & 3, bits.bit_count() // 3, peaks.last >= level - 1),
            # Distance of the latest peaks from this level.
            (_near(peaks.last - level), _near(peaks.before - level)),
            (last, _near(int(3 * (peaks.average - level)))),
            # What followed equal peaks in the past, and how often this held lately.
            *(None if outcome is None else (outcome[0] >= level, outcome[1]) for outcome in peaks.followed()),
            # One day, two days and one week ago.
            (last, self._around(self._day), self._around(2 * self._day), self._around(7 * self._day))
            if now >= self._day
            else None,
        )

    def _around(self, slots: int) -> tuple[int, ...]:
        """Uses around the slot that lies `slots` before the next one."""
        start = len(self._used) - slots - 1
        return tuple(self._used[max(0, start) : start + 3]) if start > -3 else ()


def _near(distance: int) -> int:
    return max(-_FAR, min(_FAR, distance))


def _about(gap: int) -> int:
    """Order of magnitude of a long gap; a short gap as it is."""
    return gap if gap < _EXACT_GAP else _EXACT_GAP + 2 * (gap // _EXACT_GAP).bit_length()
