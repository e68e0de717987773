"""The cost of pings on recorded traffic: their price, plus the value of cold starts."""

from __future__ import annotations

from collections.abc import Sequence

from coldframe.warming.policy import HoldCosts, Touched, expired_share


def replayed_usd(peaks: Sequence[int], pinged: Sequence[int], costs: HoldCosts, slot_s: float) -> float:
    """pinged: the pings at the start of each slot. A recently reached environment is probably warm."""
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
