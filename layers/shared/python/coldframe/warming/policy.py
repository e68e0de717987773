"""Number of environments to hold warm in the next slot: as many as are worth their price.

Holding a level pays when the value of a cold start, times its probability, exceeds the cost of holding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coldframe.warming.forecast import Forecaster

SLOT_S = 300.0
"""A slot of the warmer function: the time between two of its runs."""

_LEAST_EXPIRY_S, _MOST_EXPIRY_S = 300.0, 2700.0
"""Lambda keeps an idle environment for 5 to 45 minutes by published measurements; AWS gives no number."""


@dataclass(frozen=True, slots=True)
class HoldCosts:
    """Cost of holding one environment for a slot, and value of one avoided cold start; USD."""

    idle_usd: float
    cold_usd: float

    @property
    def least_probability(self) -> float:
        """Smallest probability of use at which holding a level is cheaper than a cold start."""
        return self.idle_usd / (self.idle_usd + self.cold_usd)


def level_to_hold(probabilities: Iterable[tuple[int, float]], least_probability: float) -> int:
    """The highest level that is likely enough, if each environment is paid for as long as it is held."""
    return max((level for level, probability in probabilities if probability > least_probability), default=0)


def level_to_ping(
    probabilities: Sequence[tuple[int, float]], idle_slots: Sequence[int], costs: HoldCosts, slot_s: float
) -> int:
    """Number of pings to send at once. A recently reached level is probably warm without a ping.

    idle_slots: for each level, whole slots since a request or a ping last reached it. Reaching a level takes
    as many pings as the level, so the levels below are paid for, too.
    """
    best, best_level, gain, reached = 0.0, 0, 0.0, 0
    for (level, probability), slots in zip(probabilities, idle_slots, strict=True):
        saved_usd = probability * expired_share((slots + 0.5) * slot_s) * costs.cold_usd
        gain += (level - reached) * (saved_usd - costs.idle_usd)
        reached = level
        if gain > best:
            best, best_level = gain, level
    return best_level


def expired_share(idle_s: float) -> float:
    """Share of environments that AWS has ended after this idle time, if all idle times are equally likely."""
    share = (idle_s - _LEAST_EXPIRY_S) / (_MOST_EXPIRY_S - _LEAST_EXPIRY_S)
    return min(max(share, 0.0), 1.0)


def held_levels(peaks: Sequence[int], costs: HoldCosts, slot_s: float = SLOT_S) -> list[int]:
    """The level held during each slot, decided from the peaks of earlier slots alone."""
    forecaster, levels = Forecaster(slot_s), []
    for peak in peaks:
        levels.append(level_to_hold(forecaster.probabilities(), costs.least_probability))
        forecaster.observe(peak)
    return levels


def pinged_levels(peaks: Sequence[int], costs: HoldCosts, slot_s: float = SLOT_S) -> list[int]:
    """The pings sent at once at the start of each slot, decided from earlier peaks alone."""
    forecaster, touched, levels = Forecaster(slot_s), Touched(), []
    for peak in peaks:
        probabilities = forecaster.probabilities()
        level = level_to_ping(
            probabilities, [touched.idle_slots(level) for level, _ in probabilities], costs, slot_s
        )
        levels.append(level)
        touched.add(max(peak, level))
        forecaster.observe(peak)
    return levels


class Touched:
    """Latest slot in which each level was busy, by requests or pings."""

    def __init__(self) -> None:
        self._slots = 0
        self._latest: list[tuple[int, int]] = []  # (level, slot): falling levels, rising slots

    def add(self, level: int) -> None:
        """Adds a slot with its number of busy environments."""
        while self._latest and self._latest[-1][0] <= level:
            self._latest.pop()
        if level:
            self._latest.append((level, self._slots))
        self._slots += 1

    def idle_slots(self, level: int) -> int:
        """Whole slots since the level was busy; all slots, if it never was."""
        slot = max((slot for reached, slot in self._latest if reached >= level), default=-1)
        return self._slots - 1 - slot if slot >= 0 else self._slots
