"""The cost of holding one environment for a slot, and the value of a cold start.

Callers pass prices, so the planner and the warmer function compute with equal ones.
"""

from __future__ import annotations

PING_S = 0.3
"""Billed time of a ping: the environment is held for a quarter of a second, plus a moment for the answer."""

COLD_USD = 0.001
"""Value of one cold start, unless the user sets another.

FeMux's value: 0.808 s of waiting, each second worth 99.69 GB-seconds, at arm64's price of duration.
https://github.com/ubc-cirrus-lab/femux, read 2026-11-22
"""


def ping_usd(
    memory_gb: float, on_demand_gb_s_usd: float, request_usd: float, ping_s: float = PING_S
) -> float:
    """Cost of one ping, which holds an environment for at least five minutes."""
    return request_usd + ping_s * memory_gb * on_demand_gb_s_usd


def provisioned_usd(memory_gb: float, provisioned_gb_s_usd: float, slot_s: float) -> float:
    """Cost of one provisioned environment for a slot."""
    return memory_gb * provisioned_gb_s_usd * slot_s
