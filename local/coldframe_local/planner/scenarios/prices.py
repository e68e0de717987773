"""Prices as data: `prices.toml`, or a file of the user's own."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

from coldframe.errors import ColdframeError

PRICES = Path(__file__).parent / "prices.toml"
STALE_DAYS = 90
MONTH_S = 730 * 3600.0

_REFRESH = "Run `coldframe prices --refresh prices.toml`, and add `--price-file prices.toml`."


class PricesUnusable(ColdframeError):
    """A file of prices cannot be read, or has not what is asked of it."""


class Tier(Struct, frozen=True, forbid_unknown_fields=True):
    """Share of its first price that duration costs above a number of GB-seconds in a month."""

    from_gb_s: float
    share: float


class LambdaPrices(Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of one architecture, per GB-second. None if provisioned concurrency has no known price."""

    on_demand_gb_s_usd: float
    provisioned_gb_s_usd: float | None = None
    provisioned_duration_gb_s_usd: float | None = None
    tiers: tuple[Tier, ...] = ()

    def on_demand_usd(self, gb_s_of_month: float) -> float:
        """A month's duration on demand, each part of it at the price of its tier."""
        tiers = (Tier(0.0, 1.0), *self.tiers, Tier(float("inf"), 0.0))
        return sum(
            max(0.0, min(gb_s_of_month, after.from_gb_s) - tier.from_gb_s)
            * tier.share
            * self.on_demand_gb_s_usd
            for tier, after in pairwise(tiers)
        )


class ContainerPrices(Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of a container that is always on."""

    vcpu_h_usd: float
    gb_h_usd: float


class ManagedPrices(Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of Lambda Managed Instances."""

    instance: str
    instance_h_usd: float
    vcpu: int
    gb: float
    fee_share: float
    least_instances: int


class MicrovmPrices(Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of Lambda MicroVMs, while they run."""

    vcpu_s_usd: float
    gb_s_usd: float


class GpuPrices(Struct, frozen=True, forbid_unknown_fields=True):
    """Price of the smallest instance with such a GPU."""

    instance: str
    instance_h_usd: float
    gpus: int = 1

    @property
    def gpu_h_usd(self) -> float:
        """One GPU's part."""
        return self.instance_h_usd / self.gpus


class RegionPrices(Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of one region, by architecture. A missing price is not offered or not known.

    source, read: only if they differ from the file's. others_read: day of the prices that the source does not
    tell, if it differs.
    """

    request_usd: float
    lambda_: dict[str, LambdaPrices] = msgspec.field(name="lambda")
    snapstart_cache_gb_s_usd: float | None = None
    snapstart_restore_gb_usd: float | None = None
    source: str = ""
    read: date | None = None
    others_read: date | None = None
    container: dict[str, ContainerPrices] = {}
    managed: dict[str, ManagedPrices] = {}
    microvm: dict[str, MicrovmPrices] = {}
    gpu: dict[str, GpuPrices] = {}
    """By the GPU's name."""

    def has_provisioned(self, architecture: str) -> bool:
        """Whether it is known what provisioned concurrency costs."""
        of = self.lambda_[architecture]
        return of.provisioned_gb_s_usd is not None and of.provisioned_duration_gb_s_usd is not None

    @property
    def has_snapstart(self) -> bool:
        """Whether it is known what SnapStart costs."""
        return self.snapstart_cache_gb_s_usd is not None and self.snapstart_restore_gb_usd is not None


class Prices(Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    read: date
    sources: dict[str, str]
    regions: dict[str, RegionPrices]

    def region(self, name: str, architecture: str = "") -> RegionPrices:
        """Raises PricesUnusable, which lists the regions or the architectures that there are."""
        if name not in self.regions:
            raise PricesUnusable(
                f"There are no prices of {name}, only of {', '.join(self.regions)}. {_REFRESH}"
            )
        region = self.regions[name]
        if architecture and architecture not in region.lambda_:
            raise PricesUnusable(
                f"There are no prices of {architecture} in {name}, only of {', '.join(region.lambda_)}."
                " Choose another architecture or region."
            )
        return region

    def stale(self, today: date, region: str = "") -> str:
        """A warning when prices of the region were read more than 90 days ago, else an empty text."""
        of = self.regions.get(region)
        read = (of and of.read) or self.read
        if (age_days := (today - read).days) > STALE_DAYS:
            return f"Prices were read {age_days} days ago, on {read}. {_REFRESH}"
        others = (of and of.others_read) or read
        if (age_days := (today - others).days) > STALE_DAYS:
            page = self.sources.get("lambda", "AWS's pages")
            return (
                f"Prices that AWS's price list of Lambda does not tell were read {age_days} days ago, on"
                f" {others}. Compare them with {page}."
            )
        return ""


def costs(amount: float, price_usd: float | None, what: str) -> float:
    """amount × price; nothing costs nothing. Raises PricesUnusable for a price that is not known."""
    if not amount:
        return 0.0
    if price_usd is None:
        raise PricesUnusable(
            f"The price of {what} in this region and architecture is not known. Write it into a file like "
            f"{PRICES}, and set `price_file` in a scenario file to it."
        )
    return amount * price_usd


def load_prices(path: Path = PRICES) -> Prices:
    """Raises PricesUnusable."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Prices)
    except (OSError, msgspec.MsgspecError) as exc:
        raise PricesUnusable(f"{path} has no prices: {exc}. Expected a file like {PRICES}.") from exc
