"""What is known of one level before a slot: when it was used, seen from several sides.

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
"""How many contexts `Past.contexts` tells."""

_SPANS = (8, 30, 120, 480)
RATES = len(_SPANS)
"""How many rates `Past.rates` tells."""


class Past:
    """The past of one level. slot_s: how long a slot is. unused: slots before its first use."""

    def __init__(self, slot_s: float, unused: int = 0) -> None:
        self._hour = max(1, round(_HOUR_S / slot_s))
        self._day = max(1, round(_DAY_S / slot_s))
        self._used = bytearray(unused)
        self._bits = 0
        self._gaps = (_LONGEST_GAP, _LONGEST_GAP, _LONGEST_GAP)  # to now, and those before the last two uses
        self.uses = 0
        self.rates = [0.0] * RATES
        """Share of slots with a use, over shorter and longer times."""

    def add(self, used: bool) -> None:
        """One slot more."""
        for number, span in enumerate(_SPANS):
            # The plain mean while a level is young; else a first use would weigh as much as a whole span.
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
        """What the next slot may be like in; None where nothing is known yet. level: whose past this is."""
        bits, now = self._bits, len(self._used)
        gap, before, earlier = map(_about, self._gaps)
        last = bits & 1
        return (
            # Since the last use, and the gaps before it: a timer's traffic, and how a burst ends.
            gap,
            (gap, before),
            (gap, before, earlier),
            # The last slots themselves.
            bits & 0xF,
            bits & 0xFF,
            bits & 0xFFF,
            # The clock: the minute of the hour, an hour ago, and round numbers of slots ago.
            now % self._hour if self._hour > 1 else None,
            self._around(self._hour),
            (last, bits >> 9 & 1, bits >> 14 & 1, bits >> 19 & 1, bits >> 29 & 1),
            # How busy it was.
            (last, (bits & (1 << 30) - 1).bit_count()),
            (bits & 3, bits.bit_count() // 3, peaks.last >= level - 1),
            # How far the latest peaks are from this level.
            (_near(peaks.last - level), _near(peaks.before - level)),
            (last, _near(int(3 * (peaks.average - level)))),
            # What followed when the peaks were the same before, and how often that was true lately.
            *(None if told is None else (told[0] >= level, told[1]) for told in peaks.followed()),
            # The day before, and the one before that; and a week ago.
            (last, self._around(self._day), self._around(2 * self._day), self._around(7 * self._day))
            if now >= self._day
            else None,
        )

    def _around(self, slots: int) -> tuple[int, ...]:
        """Uses so many slots before the next one, and beside it."""
        start = len(self._used) - slots - 1
        return tuple(self._used[max(0, start) : start + 3]) if start > -3 else ()


def _near(distance: int) -> int:
    return max(-_FAR, min(_FAR, distance))


def _about(gap: int) -> int:
    """Long gaps are told by their order of magnitude."""
    return gap if gap < _EXACT_GAP else _EXACT_GAP + 2 * (gap // _EXACT_GAP).bit_length()
