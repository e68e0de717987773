"""AWS's price list of Lambda: one offer file in JSON, without credentials, with the prices of every region.

Source: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/bulk-api-reading-price-list-files.html,
read 2026-11-25.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from coldframe.whole_file import whole_file
from coldframe_local.planner.scenarios.prices import LambdaPrices, Prices, PricesUnusable, RegionPrices, Tier

OFFER = "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AWSLambda/current/index.json"
SOURCE = "price_list"
"""Name of the offer file among the sources of a table of prices."""

ARCHITECTURES = {"x86_64": "", "arm64": "-ARM"}
"""Ending of a usage type by architecture."""

REQUEST, ON_DEMAND = "Request", "Lambda-GB-Second"
PROVISIONED, PROVISIONED_DURATION = "Lambda-Provisioned-Concurrency", "Lambda-Provisioned-GB-Second"
SNAPSTART_CACHE, SNAPSTART_RESTORE = "Lambda-SnapStart-Cached-GB-S", "Lambda-SnapStart-Restored-GB"

# Outside us-east-1 a usage type begins with a short name of its region, such as EU or EUC1.
_REGION_PREFIX = re.compile(r"\A[A-Z][A-Z0-9]{1,4}-")

Ladder = tuple[tuple[float, float], ...]
"""Each price of a usage type in USD, behind the amount of a month from which it holds."""

Rates = Mapping[str, Ladder]
"""Price ladders of one region, by usage type without the region's name."""


class Attributes(Struct, frozen=True):
    """Usage type, and the region in which it is billed."""

    usagetype: str = ""
    region: str = field(name="regionCode", default="")
    location_type: str = field(name="locationType", default="")


class Product(Struct, frozen=True):
    """Something that AWS bills by itself."""

    attributes: Attributes


class Dimension(Struct, frozen=True):
    """One step of a price. usd: decimal numbers by currency."""

    usd: dict[str, str] = field(name="pricePerUnit")
    begin: str = field(name="beginRange", default="0")


class Term(Struct, frozen=True):
    """Conditions of a price."""

    dimensions: dict[str, Dimension] = field(name="priceDimensions")


class Terms(Struct, frozen=True):
    """Terms by product, then by offer."""

    on_demand: dict[str, dict[str, Term]] = field(name="OnDemand")


class Offer(Struct, frozen=True):
    """The offer file, by what is read here."""

    code: str = field(name="offerCode")
    publication: str = field(name="publicationDate")
    products: dict[str, Product]
    terms: Terms


def read_offer(body: bytes) -> Offer:
    """Raises PricesUnusable for anything but a whole offer file of Lambda."""
    try:
        offer = msgspec.json.decode(body, type=Offer)
    except msgspec.MsgspecError as exc:
        raise PricesUnusable(
            f"The price list is broken or incomplete: {exc}. Expected an offer file in JSON. Try again later."
        ) from exc
    if offer.code != "AWSLambda":
        raise PricesUnusable(
            f"The price list is of {offer.code[:40]!r}, expected AWSLambda. Download it from {OFFER}."
        )
    return offer


def rates(offer: Offer) -> dict[str, dict[str, Ladder]]:
    """Price ladders by region and usage type. Raises PricesUnusable where one usage type has two ladders."""
    table: dict[str, dict[str, Ladder]] = {}
    for sku, product in offer.products.items():
        of = product.attributes
        ladder = _ladder(offer.terms.on_demand.get(sku, {}))
        if of.location_type != "AWS Region" or not of.region or not ladder:
            continue
        usage = _REGION_PREFIX.sub("", of.usagetype, count=1)
        if table.setdefault(of.region, {}).setdefault(usage, ladder) != ladder:
            raise PricesUnusable(
                f"The price list has two prices of {usage} in {of.region}. Expected one. Try again later."
            )
    return table


def _ladder(offers: Mapping[str, Term]) -> Ladder:
    """Steps in ascending order; empty without a price in USD."""
    try:
        steps = [
            (float(step.begin), float(step.usd["USD"]))
            for term in offers.values()
            for step in term.dimensions.values()
            if "USD" in step.usd
        ]
    except ValueError as exc:
        raise PricesUnusable(
            f"The price list is broken: {exc}. Expected a decimal number. Try again later."
        ) from exc
    steps.sort()
    return tuple(steps) if steps and all(usd > 0 for _, usd in steps) else ()


def refreshed(prices: Prices, offer: Offer, today: date) -> Prices:
    """The table with Lambda's prices from the offer, in every region that the offer has.

    A price that the offer does not tell stays. Raises PricesUnusable where the offer lacks on-demand duration
    that the table knows, since part of a price list must not replace a whole one.
    """
    by_region = {
        name: region
        for name, of in rates(offer).items()
        if (region := _region(prices.regions.get(name), of, prices.read, today)) is not None
    }
    for name, region in prices.regions.items():
        missing = region.lambda_.keys() - (by_region[name].lambda_ if name in by_region else {})
        if missing:
            raise PricesUnusable(
                f"The price list has no price of {', '.join(sorted(missing))} in {name}. Expected each"
                " region of the present table. Try again later."
            )
    return Prices(today, {**prices.sources, SOURCE: OFFER}, dict(sorted(by_region.items())))


def _region(old: RegionPrices | None, of: Rates, read: date, today: date) -> RegionPrices | None:
    """Prices of one region; None if requests or duration have none."""
    architectures = {
        name: _lambda(old.lambda_.get(name) if old else None, of, ending)
        for name, ending in ARCHITECTURES.items()
        if ON_DEMAND + ending in of
    }
    if not architectures or REQUEST not in of:
        return None
    base = old or RegionPrices(0.0, {})
    new = replace(
        base,
        request_usd=of[REQUEST][0][1],
        lambda_=architectures,
        snapstart_cache_gb_s_usd=_first(of, SNAPSTART_CACHE, base.snapstart_cache_gb_s_usd),
        snapstart_restore_gb_usd=_first(of, SNAPSTART_RESTORE, base.snapstart_restore_gb_usd),
        source=SOURCE,
        read=today,
    )
    return replace(new, others_read=base.others_read or base.read or read) if _keeps(new, of) else new


def _lambda(old: LambdaPrices | None, of: Rates, ending: str) -> LambdaPrices:
    (_, first_usd), *steps = of[ON_DEMAND + ending]
    return LambdaPrices(
        first_usd,
        _first(of, PROVISIONED + ending, old.provisioned_gb_s_usd if old else None),
        _first(of, PROVISIONED_DURATION + ending, old.provisioned_duration_gb_s_usd if old else None),
        tuple(Tier(from_gb_s, round(usd / first_usd, 4)) for from_gb_s, usd in steps),
    )


def _first(of: Rates, usage: str, otherwise: float | None) -> float | None:
    return of[usage][0][1] if usage in of else otherwise


def _keeps(region: RegionPrices, of: Rates) -> bool:
    """Whether the region has a price that the offer does not tell."""
    return (
        any((region.container, region.managed, region.microvm, region.gpu))
        or (region.has_snapstart and not {SNAPSTART_CACHE, SNAPSTART_RESTORE} <= of.keys())
        or any(
            region.has_provisioned(name) and PROVISIONED + ARCHITECTURES[name] not in of
            for name in region.lambda_
        )
    )


def refresh(path: Path, base: Prices, fetch: Callable[[str], bytes], today: date) -> Prices:
    """Writes the refreshed table to a file, as a whole or not at all, and returns it.

    base: prices that the offer does not tell. fetch: downloads an address. Raises PricesUnusable; the file is
    then what it was.
    """
    offer = read_offer(fetch(OFFER))
    prices = refreshed(base, offer, today)
    _write(path, _as_toml(prices, offer.publication))
    return prices


def _as_toml(prices: Prices, publication: str) -> str:
    """A document that `load_prices` reads."""
    import tomlkit

    about = f"# Lambda's prices: AWS's price list, published {publication[:10]}. Other prices are older.\n"
    return about + tomlkit.dumps(_plain(msgspec.to_builtins(prices, builtin_types=(date,))))


def _plain(value: Any) -> Any:
    """The value without entries that TOML cannot hold, or that say nothing."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items() if entry not in (None, "", {}, (), [])}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def _write(path: Path, text: str) -> None:
    try:
        with whole_file(path) as file:
            file.write(text.encode())
    except OSError as exc:
        raise PricesUnusable(
            f"{path} cannot be written: {exc.strerror}. Choose a file in a folder of yours."
        ) from exc
