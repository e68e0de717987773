"""Lambda's prices, and a bill that grows with a function's use.

Source: https://aws.amazon.com/lambda/pricing/, us-east-1, first tier, read 2026-11.
"""

from __future__ import annotations

from dataclasses import dataclass

_MB_PER_GB = 1024


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per request, per GB-second of each kind, and per GB of a restored snapshot."""

    request_usd: float
    on_demand_gb_s_usd: float
    provisioned_gb_s_usd: float
    provisioned_duration_gb_s_usd: float
    snapstart_cache_gb_s_usd: float = 0.0000015046
    snapstart_restore_gb_usd: float = 0.0001397998


PRICES = {
    "x86_64": Prices(0.20e-6, 0.0000166667, 0.0000041667, 0.0000097222),
    "arm64": Prices(0.20e-6, 0.0000133334, 0.0000033334, 0.0000077778),
}


class Bill:
    """The cost of one function so far.

    AWS rounds the time of provisioned concurrency up to five minutes, and charges at least three hours for a
    snapshot. Here both count to the second. The free tier is left out.
    """

    def __init__(self, architecture: str, now: float) -> None:
        self._prices = PRICES[architecture]
        self._usd = 0.0
        self._provisioned_gb = 0.0
        self._snapshots_gb = 0.0
        self._since = now

    def invocation(self, billed_ms: int, memory_mb: int, *, provisioned: bool) -> None:
        """Adds a request and its duration, which includes an on-demand init phase."""
        self._usd += self._prices.request_usd
        self._duration(billed_ms, memory_mb, provisioned=provisioned)

    def provisioned_init(self, init_ms: float, memory_mb: int) -> None:
        """Adds the init phase of a provisioned environment, which is billed as duration."""
        self._duration(init_ms, memory_mb, provisioned=True)

    def restored(self, memory_mb: int) -> None:
        """Adds the restore of an environment from a snapshot, which is billed by its size."""
        self._usd += memory_mb / _MB_PER_GB * self._prices.snapstart_restore_gb_usd

    def keep_snapshots(self, versions: int, memory_mb: int, now: float) -> None:
        """From now on, the snapshots of `versions` versions are kept."""
        self._accrue(now)
        self._snapshots_gb = versions * memory_mb / _MB_PER_GB

    def provision(self, concurrency: int, memory_mb: int, now: float) -> None:
        """From now on, this provisioned concurrency is kept."""
        self._accrue(now)
        self._provisioned_gb = concurrency * memory_mb / _MB_PER_GB

    def usd(self, now: float) -> float:
        """The cost until now, in US dollars."""
        self._accrue(now)
        return self._usd

    def _duration(self, duration_ms: float, memory_mb: int, *, provisioned: bool) -> None:
        gb_s = duration_ms / 1000 * memory_mb / _MB_PER_GB
        prices = self._prices
        self._usd += gb_s * (
            prices.provisioned_duration_gb_s_usd if provisioned else prices.on_demand_gb_s_usd
        )

    def _accrue(self, now: float) -> None:
        passed_s = now - self._since
        self._usd += self._provisioned_gb * passed_s * self._prices.provisioned_gb_s_usd
        self._usd += self._snapshots_gb * passed_s * self._prices.snapstart_cache_gb_s_usd
        self._since = now
