"""Choice of messages that an environment can answer in its time left. Pure."""

from collections.abc import Sequence

_TEXT_BYTES = 16  # cost of a text besides its own bytes
_MARGIN = 1.5
_SHARE = 0.5
_FADING = 0.5


def work_bytes(texts: Sequence[str]) -> int:
    """Work of encoding texts, in bytes of text."""
    return sum(len(text.encode()) + _TEXT_BYTES for text in texts)


class Pace:
    """The slowest measured pace, which is halved by each group of messages that is quicker.

    So a slow moment has little effect later, and a slow kind of text is expected again.
    One environment answers one batch at a time, so no lock guards it.
    """

    def __init__(self) -> None:
        self._s_per_byte: float | None = None

    def add(self, work: int, took_s: float) -> None:
        """Learns from a group, even from an incomplete one, which would have taken longer still."""
        self._s_per_byte = max(took_s / work, _FADING * (self._s_per_byte or 0.0))

    def fits(self, work: int, left_s: float) -> bool:
        """Whether the work is expected to end in time. True before the first measurement."""
        return self._s_per_byte is None or work * self._s_per_byte * _MARGIN <= left_s

    def group(self, works: Sequence[int], left_s: float) -> int:
        """Number of messages, from the first on, to answer together; 0 where none can end in time.

        They are expected to take half of the time left, so a wrong expectation costs little. A single message
        may take all of it. The first group of an environment is one message.
        """
        if not works or not self.fits(works[0], left_s):
            return 0
        if self._s_per_byte is None:
            return 1
        count, total = 1, works[0]
        while count < len(works) and self.fits(total := total + works[count], left_s * _SHARE):
            count += 1
        return count
