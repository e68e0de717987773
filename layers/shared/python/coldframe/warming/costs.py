"""What it costs to hold one environment for a slot, and what a cold start is worth.

Prices are handed in, so that the planner and the warmer function compute with the same ones.
"""

from __future__ import annotations

PING_S = 0.3
"""Billed time of a ping: it is held for a quarter of a second, and its answer takes a moment."""

COLD_USD = 0.001
"""What one cold start is worth, unless the user says otherwise.

FeMux's: 0.808 s of waiting, each worth 99.69 GB-seconds, at arm64's price of duration.
https://github.com/ubc-cirrus-lab/femux, read 2026-11-22
"""


def ping_usd(
    memory_gb: float, on_demand_gb_s_usd: float, request_usd: float, ping_s: float = PING_S
) -> float:
    """Of one ping, which holds an environment for at least five minutes."""
    return request_usd + ping_s * memory_gb * on_demand_gb_s_usd


def provisioned_usd(memory_gb: float, provisioned_gb_s_usd: float, slot_s: float) -> float:
    """Of one provisioned environment for a slot."""
    return memory_gb * provisioned_gb_s_usd * slot_s
