"""Invocations of a function and their results, as numbers: traffic that can be simulated again."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from coldframe.capacity.admission import Throttle
from coldframe_local.emulator.lambda_service.lambda_types import Invoked

_KEPT = 100_000  # a few megabytes; of more, only the latest are simulated


@dataclass(frozen=True, slots=True)
class Recorded:
    """One invocation. arrived_s: since the service started. init_ms, restore_ms: what it waited for; 0 for
    nothing. A throttled one has no times."""

    arrived_s: float
    throttled: bool = False
    cold: bool = False
    duration_ms: float = 0.0
    init_ms: float = 0.0
    restore_ms: float = 0.0

    @classmethod
    def of(cls, arrived_s: float, ended: Invoked | Throttle) -> Recorded:
        """Record of an invocation that has ended or was refused."""
        if isinstance(ended, Throttle):
            return cls(arrived_s, throttled=True)
        return cls(
            arrived_s,
            cold=ended.cold,
            duration_ms=ended.duration_ms,
            init_ms=ended.init_ms or 0.0,
            restore_ms=ended.restore_ms or 0.0,
        )


class Recording:
    """The latest invocations of one function, in the order in which they ended. Used in one thread."""

    def __init__(self) -> None:
        self._kept: deque[Recorded] = deque(maxlen=_KEPT)
        self._count = 0

    def add(self, arrived_s: float, ended: Invoked | Throttle) -> None:
        """An invocation is over, or was refused."""
        self._kept.append(Recorded.of(arrived_s, ended))
        self._count += 1

    @property
    def is_complete(self) -> bool:
        """Whether nothing was forgotten yet."""
        return self._count == len(self._kept)

    def by_arrival(self) -> list[Recorded]:
        """All that is kept, in the order of arrival."""
        return sorted(self._kept, key=lambda one: one.arrived_s)
