"""Peaks that all levels of a function share: the latest ones, and what followed equal peaks in the past."""

from __future__ import annotations

from array import array

_ALIKE = (4, 10, 24)  # numbers of slots that must be equal
_AVERAGE = 0.15
_LONGEST = 24


class Peaks:
    """The peaks of a function so far. A peak is the most environments busy at once in a slot."""

    def __init__(self) -> None:
        self._peaks = array("I")
        self._after: dict[tuple[int, bytes], int] = {}  # the latest slot after these peaks
        self._matches = [-1] * len(_ALIKE)
        self._lengths = [0] * len(_ALIKE)
        self.last = self.before = 0
        self.average = 0.0

    def add(self, peak: int) -> None:
        """Adds a slot."""
        for number, match in enumerate(self._matches):
            agrees = match >= 0 and self._peaks[match] == peak
            self._lengths[number] = min(self._lengths[number] + 1, _LONGEST) if agrees else 0
            self._matches[number] = match + 1 if agrees else -1
        self._peaks.append(min(peak, 0xFFFFFFFF))
        self.before, self.last = self.last, peak
        self.average += _AVERAGE * (peak - self.average)
        for number, count in enumerate(_ALIKE):
            if len(self._peaks) >= count:
                key = count, self._peaks[-count:].tobytes()
                if self._matches[number] < 0:
                    self._matches[number] = self._after.get(key, -1)
                self._after[key] = len(self._peaks)

    def followed(self) -> list[tuple[int, int] | None]:
        """For each number of equal slots: the peak that followed, and for how many slots this prediction
        held.
        """
        return [
            (self._peaks[match], length) if match >= 0 else None
            for match, length in zip(self._matches, self._lengths, strict=True)
        ]
