"""One round of the warmer: from what is known of the traffic to what to do, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coldframe.warming.forecast import Forecaster
from coldframe.warming.policy import SLOT_S, HoldCosts, Touched, level_to_hold, level_to_ping
from coldframe.warming.trial import fixed_pings, replayed_usd

_DAY = 288  # slots
_SHOWN = 5


@dataclass(frozen=True)
class Guards:
    """What the warmer may do, whatever it expects.

    least, most: environments. day_usd: of a day, pings and provisioned concurrency together. guaranteed: of
    the environments that are expected, so many may be provisioned. fixed: pinged each round before there was
    a forecast; the forecast must do better.
    """

    least: int = 0
    most: int = 10
    day_usd: float = 0.05
    guaranteed: int = 0
    fixed: int = 0


@dataclass(frozen=True)
class Decision:
    """What to do, and why. probabilities: of the lowest levels. *_usd: of the last day, replayed."""

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
    """For the slot after the last of `peaks`.

    pinged: what was sent in each slot. ping, provision: what it costs to hold one environment each way.

    1. The forecast's level, or the fixed one if that would have been cheaper on the last day.
    2. At least `least`, unless traffic alone kept as many busy; at most `most`.
    3. No more than is left of the day's money.
    """
    forecaster, touched, simulated, replayed = Forecaster(slot_s, guards.most), Touched(), Touched(), []
    for peak, sent in zip(peaks, pinged, strict=True):
        told = forecaster.probabilities()
        level = level_to_ping(told, [simulated.idle_slots(level) for level, _ in told], ping, slot_s)
        replayed.append(level)
        simulated.add(max(peak, level))
        touched.add(max(peak, sent))
        forecaster.observe(peak)
    told = forecaster.probabilities()
    level = level_to_ping(told, [touched.idle_slots(level) for level, _ in told], ping, slot_s)
    reason = "expected" if level else "nothing that is likely would be cold"

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

    provisioned = min(guards.guaranteed, guards.most, level_to_hold(told, provision.least_probability))
    left_usd = max(0.0, guards.day_usd - spent_usd)
    if provisioned * provision.idle_usd > left_usd:
        provisioned = int(left_usd / provision.idle_usd)
    left_usd -= provisioned * provision.idle_usd
    if level <= provisioned:
        level = 0  # what is provisioned is warm
    if level * ping.idle_usd > left_usd:
        level, reason = int(left_usd / ping.idle_usd), f"{guards.day_usd:g} USD of the day are spent"
    usd = provisioned * provision.idle_usd + level * ping.idle_usd
    shown = tuple((at, round(probability, 3)) for at, probability in told[:_SHOWN])
    return Decision(level, provisioned, reason, usd, shown, predicted_usd, fixed_usd)
