"""Counts of one environment, by lineup and arm: they only grow, and each write holds all of them.

A write that is repeated or that overtakes an older one changes nothing else, so no answer is counted twice.
"""

import math
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from coldframe.digests import blake2b
from coldframe.experiments.arms import Lineup

_BUCKETS_PER_DECADE = 40
_MOST_SUBJECTS = 10_000
_MS = "ms_"
_BUCKET_OF_ZERO = -80  # 0.01 ms


class Counts(Struct):
    """Counts of one environment and lineup, as the store keeps them.

    stage, shares, versions: of the lineup. arms: numbers by arm and name.
    """

    stage: int
    shares: list[float]
    versions: list[str]
    arms: dict[str, dict[str, int]] = field(default_factory=dict)


class _Entry:
    """Counts of one lineup in memory. written: revision that the store has."""

    def __init__(self, lineup: Lineup) -> None:
        self.run = lineup.run.run
        self.counts = Counts(lineup.run.stage, lineup.shares, lineup.versions)
        self.subjects: set[bytes] = set()
        self.revision = self.stored = 0


class Unwritten(NamedTuple):
    """Counts to write. revision: grows with each change."""

    lineup: str
    run: str
    value: bytes
    revision: int


class Tally:
    """Counts of this environment. Safe for threads: a lock guards all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}

    def add(self, lineup: Lineup, arm: str, numbers: Mapping[str, int], subject: str = "") -> None:
        """Adds to an arm's counts. subject: counted once, as far as memory for subjects allows."""
        with self._lock:
            entry = self._entries.setdefault(lineup.name, _Entry(lineup))
            sums = entry.counts.arms.setdefault(arm, {})
            for name, number in numbers.items():
                sums[name] = sums.get(name, 0) + number
            if subject and len(entry.subjects) < _MOST_SUBJECTS:
                mark = blake2b(subject.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                if mark not in entry.subjects:
                    entry.subjects.add(mark)
                    sums["subjects"] = sums.get("subjects", 0) + 1
            entry.revision += 1

    def unwritten(self) -> list[Unwritten]:
        """Counts with changes that the store lacks."""
        with self._lock:
            return [
                Unwritten(name, entry.run, msgspec.json.encode(entry.counts), entry.revision)
                for name, entry in self._entries.items()
                if entry.revision > entry.stored
            ]

    def stored(self, counts: Unwritten) -> None:
        """Records a write."""
        with self._lock:
            entry = self._entries[counts.lineup]
            entry.stored = max(entry.stored, counts.revision)


def bucket_of(ms: float) -> str:
    """Name of the histogram's bucket for a time: 40 buckets for each factor of ten."""
    place = math.floor(_BUCKETS_PER_DECADE * math.log10(ms)) if ms > 0 else _BUCKET_OF_ZERO
    return f"{_MS}{max(_BUCKET_OF_ZERO, place)}"


def quantile_ms(numbers: Mapping[str, int], share: float) -> float | None:
    """Upper end of the bucket with this quantile of the times; None without times."""
    times = times_of(numbers)
    total, below = sum(number for _, number in times), 0
    for end_ms, number in times:
        below += number
        if below >= share * total:
            return end_ms
    return None


def times_of(numbers: Mapping[str, int]) -> list[tuple[float, int]]:
    """Upper ends of the histogram's buckets in milliseconds, with the number of times in each."""
    buckets = sorted((int(name[len(_MS) :]), n) for name, n in numbers.items() if name.startswith(_MS))
    return [(float(10 ** ((place + 1) / _BUCKETS_PER_DECADE)), number) for place, number in buckets]


def read_counts(values: Iterable[bytes]) -> Iterator[Counts]:
    """Counts in stored values; values that cannot be read are left out."""
    for value in values:
        try:
            yield _COUNTS.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue


_COUNTS = msgspec.json.Decoder(Counts)
