"""How many environments to hold warm in the next slot: as many as are worth their price.

Holding a level pays when what a cold start is worth, times its probability, is more than what holding costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coldframe.warming.forecast import Forecaster

SLOT_S = 300.0
"""A slot of the warmer function: from one of its runs to the next."""

_LEAST_EXPIRY_S, _MOST_EXPIRY_S = 300.0, 2700.0
"""Lambda keeps an idle environment for 5 to 45 minutes, as far as others have observed; it does not say."""


@dataclass(frozen=True, slots=True)
class HoldCosts:
    """What holding one environment for a slot costs, and what one cold start is worth to its caller; USD."""

    idle_usd: float
    cold_usd: float

    @property
    def least_probability(self) -> float:
        """Of a use of a level, from which on holding it is the cheaper choice."""
        return self.idle_usd / (self.idle_usd + self.cold_usd)


def level_to_hold(probabilities: Iterable[tuple[int, float]], least_probability: float) -> int:
    """The highest level that is likely enough, where each environment is paid for as long as it is held."""
    return max((level for level, probability in probabilities if probability > least_probability), default=0)


def level_to_ping(
    probabilities: Sequence[tuple[int, float]], idle_slots: Sequence[int], costs: HoldCosts, slot_s: float
) -> int:
    """How many pings to send at once. A level that was touched lately is warm without a ping, most likely.

    idle_slots: of each level, the whole slots since a request or a ping last reached it. As many pings as the
    level are needed to reach it, so those below it are paid for, too.
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
    """Of environments that were idle so long: how many are gone, if all idle times are equally likely."""
    share = (idle_s - _LEAST_EXPIRY_S) / (_MOST_EXPIRY_S - _LEAST_EXPIRY_S)
    return min(max(share, 0.0), 1.0)


def held_levels(peaks: Sequence[int], costs: HoldCosts, slot_s: float = SLOT_S) -> list[int]:
    """The level held during each slot, decided from the peaks of the slots before it alone."""
    forecaster, levels = Forecaster(slot_s), []
    for peak in peaks:
        levels.append(level_to_hold(forecaster.probabilities(), costs.least_probability))
        forecaster.observe(peak)
    return levels


def pinged_levels(peaks: Sequence[int], costs: HoldCosts, slot_s: float = SLOT_S) -> list[int]:
    """The pings sent at once at the start of each slot, decided from the peaks before it alone."""
    forecaster, touched, levels = Forecaster(slot_s), Touched(), []
    for peak in peaks:
        told = forecaster.probabilities()
        level = level_to_ping(told, [touched.idle_slots(level) for level, _ in told], costs, slot_s)
        levels.append(level)
        touched.add(max(peak, level))
        forecaster.observe(peak)
    return levels


class Touched:
    """When so many environments were last busy at once, by requests or pings."""

    def __init__(self) -> None:
        self._slots = 0
        self._latest: list[tuple[int, int]] = []  # (level, slot): falling levels, rising slots

    def add(self, level: int) -> None:
        """One slot more, in which so many were busy at once."""
        while self._latest and self._latest[-1][0] <= level:
            self._latest.pop()
        if level:
            self._latest.append((level, self._slots))
        self._slots += 1

    def idle_slots(self, level: int) -> int:
        """Whole slots since so many were busy; all slots, if they never were."""
        slot = max((slot for reached, slot in self._latest if reached >= level), default=-1)
        return self._slots - 1 - slot if slot >= 0 else self._slots
