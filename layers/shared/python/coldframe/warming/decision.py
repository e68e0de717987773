"""One round of the warmer: from the traffic so far to a decision with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coldframe.warming.forecast import Forecaster
from coldframe.warming.policy import SLOT_S, HoldCosts, Touched, expired_share, level_to_hold, level_to_ping

_DAY = 288  # slots
_SHOWN = 5


@dataclass(frozen=True)
class Guards:
    """Limits on the warmer, whatever its forecast.

    least, most: environments to keep warm. day_usd: most USD of a day, for pings and provisioned concurrency.
    guaranteed: most environments to provision. fixed: pings of each round before there was a forecast, which
    has to be cheaper.
    """

    least: int = 0
    most: int = 10
    day_usd: float = 0.05
    guaranteed: int = 0
    fixed: int = 0


@dataclass(frozen=True)
class Decision:
    """A decision, and its reason. probabilities: of the lowest levels. *_usd: cost of the last day,
    replayed.
    """

    pings: int
    provisioned: int
    reason: str
    usd: float
    probabilities: tuple[tuple[int, float], ...]
    predicted_usd: float
    fixed_usd: float


def decide(
    peaks: Sequence[int],
    pinged: Sequence[int],
    ping: HoldCosts,
    provision: HoldCosts,
    guards: Guards,
    spent_usd: float = 0.0,
    slot_s: float = SLOT_S,
) -> Decision:
    """The decision for the slot after the last of `peaks`.

    pinged: pings sent in each slot. ping, provision: cost of holding one environment each way.

    1. The forecast's level, or the fixed one if that would have been cheaper on the last day.
    2. At least `least`, unless traffic alone kept that many busy; at most `most`.
    3. Not more than the rest of the day's money pays for.
    """
    forecaster, touched, simulated, replayed = Forecaster(slot_s, guards.most), Touched(), Touched(), []
    for peak, pings in zip(peaks, pinged, strict=True):
        levels = forecaster.probabilities()
        level = level_to_ping(levels, [simulated.idle_slots(level) for level, _ in levels], ping, slot_s)
        replayed.append(level)
        simulated.add(max(peak, level))
        touched.add(max(peak, pings))
        forecaster.observe(peak)
    levels = forecaster.probabilities()
    level = level_to_ping(levels, [touched.idle_slots(level) for level, _ in levels], ping, slot_s)
    reason = "expected" if level else "nothing likely would be cold"

    lately = slice(-_DAY, None)
    predicted_usd = replayed_usd(peaks[lately], replayed[lately], ping, slot_s)
    fixed = fixed_pings(peaks, guards.fixed)
    fixed_usd = replayed_usd(peaks[lately], fixed[lately], ping, slot_s)
    last = peaks[-1] if peaks else 0
    if fixed_usd < predicted_usd:
        level = 0 if last >= guards.fixed else guards.fixed
        reason = f"the fixed rate of {guards.fixed} was cheaper on the last day"

    if level < guards.least and last < guards.least:
        level, reason = guards.least, f"the minimum is {guards.least}"
    if level > guards.most:
        level, reason = guards.most, f"the maximum is {guards.most}"

    provisioned = min(guards.guaranteed, guards.most, level_to_hold(levels, provision.least_probability))
    left_usd = max(0.0, guards.day_usd - spent_usd)
    if provisioned * provision.idle_usd > left_usd:
        provisioned = int(left_usd / provision.idle_usd)
    left_usd -= provisioned * provision.idle_usd
    if level <= provisioned:
        level = 0  # provisioned environments are warm
    if level * ping.idle_usd > left_usd:
        level, reason = int(left_usd / ping.idle_usd), f"{guards.day_usd:g} USD of the day are spent"
    usd = provisioned * provision.idle_usd + level * ping.idle_usd
    probabilities = tuple((at, round(probability, 3)) for at, probability in levels[:_SHOWN])
    return Decision(level, provisioned, reason, usd, probabilities, predicted_usd, fixed_usd)


def replayed_usd(peaks: Sequence[int], pinged: Sequence[int], costs: HoldCosts, slot_s: float) -> float:
    """The cost of pings on recorded traffic: their price, plus the value of cold starts.

    pinged: pings at the start of each slot. A recently reached environment is probably warm.
    """
    touched, usd = Touched(), 0.0
    for peak, pings in zip(peaks, pinged, strict=True):
        usd += pings * costs.idle_usd
        for level in range(pings + 1, peak + 1):
            usd += expired_share((touched.idle_slots(level) + 0.5) * slot_s) * costs.cold_usd
        touched.add(max(peak, pings))
    return usd


def fixed_pings(peaks: Sequence[int], environments: int) -> list[int]:
    """Pings at a fixed rate, left out where requests kept as many environments busy in the slot before."""
    return [0 if before >= environments else environments for before in [0, *peaks][: len(peaks)]]
