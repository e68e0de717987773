"""The warmer's memory between two runs: a small record of a documented form.

It holds peaks instead of counts. The forecast learns from them again, so a new version may learn differently.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

FORM = 1
KEPT_SLOTS = 8 * 288  # eight days of five minutes: one context looks a week back
_LARGEST = 0xFFFFFFFF
_NUMBER_BYTES = 4
_MOST_BYTES = 2 * KEPT_SLOTS * _NUMBER_BYTES + 64  # a slot and its pings are two numbers


class Damaged(Exception):
    """A record that cannot be read; says why. The warmer starts with a new one."""


@dataclass(frozen=True)
class Record:
    """Peaks of consecutive slots, the last one before `end`; pings by slot; and the spending of one day.

    end: the number of a slot since 1970. revision: grows with each write, so that of two concurrent warmers
    one notices the other. provisioned: most provisioned environments that this warmer may have left in AWS;
    None
    or 0: none, so any level belongs to somebody else.
    """

    end: int = 0
    peaks: tuple[int, ...] = ()
    pings: Mapping[int, int] = field(default_factory=dict)
    day: str = ""
    spent_usd: float = 0.0
    provisioned: int | None = None
    revision: int = 0

    @property
    def pinged(self) -> list[int]:
        """The pings of each slot of `peaks`."""
        return [self.pings.get(slot, 0) for slot in range(self.end - len(self.peaks), self.end)]

    def with_slots(self, first: int, peaks: Sequence[int]) -> Record:
        """Adds slots from number `first` on, in place of earlier values for these slots.

        Missing slots had no traffic. Slots before the last `KEPT_SLOTS` are forgotten.
        """
        by_slot = dict(enumerate(self.peaks, self.end - len(self.peaks))) | dict(enumerate(peaks, first))
        end = max([self.end, first + len(peaks)])
        oldest = max(min(by_slot, default=end), end - KEPT_SLOTS)
        return replace(
            self,
            end=end,
            peaks=tuple(by_slot.get(slot, 0) for slot in range(oldest, end)),
            pings={slot: count for slot, count in self.pings.items() if slot >= oldest},
        )

    def with_pings(self, slot: int, count: int) -> Record:
        """Adds pings sent at once in this slot, which may not be over."""
        return replace(self, pings={**self.pings, slot: max(count, self.pings.get(slot, 0))})

    def with_spent(self, day: str, usd: float) -> Record:
        """Adds spending of this day. Other days are forgotten."""
        return replace(self, day=day, spent_usd=self.spent_on(day) + usd)

    def with_provisioned(self, count: int) -> Record:
        """Records requested provisioned concurrency."""
        return replace(self, provisioned=count)

    def spent_on(self, day: str) -> float:
        """USD spent on this day so far."""
        return self.spent_usd if day == self.day else 0.0


def to_attributes(record: Record) -> dict[str, Any]:
    """Attributes for a table: text, whole numbers and bytes."""
    return {
        "form": FORM,
        "revision": record.revision,
        "end_slot": record.end,
        "peaks": _packed(record.peaks),
        "pings": _packed([number for ping in sorted(record.pings.items()) for number in ping]),
        "spent_day": record.day,
        "spent_usd": f"{record.spent_usd:.9f}",
        "provisioned": -1 if record.provisioned is None else record.provisioned,
    }


def from_attributes(attributes: Mapping[str, Any]) -> Record:
    """The record of stored attributes. Raises Damaged for another form or changed numbers."""
    if attributes.get("form") != FORM:
        raise Damaged(f"its form is {attributes.get('form')!r}, expected {FORM}")
    try:
        pings = _unpacked(attributes["pings"])
        provisioned, spent_usd = int(attributes["provisioned"]), float(attributes["spent_usd"])
        if len(pings) % 2 or not 0.0 <= spent_usd < inf:
            raise Damaged("its numbers are impossible")
        return Record(
            int(attributes["end_slot"]),
            _unpacked(attributes["peaks"]),
            dict(zip(pings[::2], pings[1::2], strict=True)),
            str(attributes["spent_day"]),
            spent_usd,
            None if provisioned < 0 else provisioned,
            int(attributes["revision"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as exc:
        raise Damaged(f"it cannot be read ({type(exc).__name__})") from exc


def _packed(values: Sequence[int]) -> bytes:
    return zlib.compress(struct.pack(f"<{len(values)}I", *(min(value, _LARGEST) for value in values)), 9)


def _unpacked(packed: Any) -> tuple[int, ...]:
    if not isinstance(packed, bytes):
        raise Damaged(f"it has {type(packed).__name__} in place of bytes")
    inflate = zlib.decompressobj()
    content = inflate.decompress(packed, _MOST_BYTES)
    if not inflate.eof or len(content) % _NUMBER_BYTES:
        raise Damaged("its bytes are cut off, or too long")
    return struct.unpack(f"<{len(content) // _NUMBER_BYTES}I", content)
