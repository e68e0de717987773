"""AWS's price list becomes a table of prices, as a whole or not at all."""

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coldframe_local.cli import main
from coldframe_local.commands import prices as command
from coldframe_local.planner.scenarios.price_list import OFFER, refresh
from coldframe_local.planner.scenarios.prices import PricesUnusable, Tier, load_prices

TODAY = date(2027, 5, 1)
BASE = load_prices()

# Prefix of usage types, as AWS's bills have it. https://docs.aws.amazon.com/global-infrastructure/latest/regions/
PREFIXES = {
    "us-east-1": "", "us-east-2": "USE2-", "us-west-2": "USW2-", "eu-west-1": "EU-", "eu-west-2": "EUW2-",
    "eu-central-1": "EUC1-", "eu-north-1": "EUN1-", "ap-northeast-1": "APN1-", "ap-northeast-2": "APN2-",
    "ap-southeast-1": "APS1-", "ap-southeast-2": "APS2-",
}  # fmt: skip

DURATION = [("0", "6000000000", "0.0000200000"), ("6000000000", "15000000000", "0.0000180000"),
            ("15000000000", "Inf", "0.0000160000")]  # fmt: skip
DURATION_ARM = [("0", "7500000000", "0.0000150000"), ("7500000000", "Inf", "0.0000135000")]

USAGES: dict[str, tuple[str, list[tuple[str, str, str]]]] = {
    "Request": ("AWS-Lambda-Requests", [("0", "Inf", "0.0000003000")]),
    "Request-ARM": ("AWS-Lambda-Requests-ARM", [("0", "Inf", "0.0000003000")]),
    "Lambda-GB-Second": ("AWS-Lambda-Duration", DURATION),
    "Lambda-GB-Second-ARM": ("AWS-Lambda-Duration-ARM", DURATION_ARM),
    "Lambda-Provisioned-Concurrency": ("AWS-Lambda-Provisioned-Concurrency", [("0", "Inf", "0.0000050000")]),
    "Lambda-Provisioned-Concurrency-ARM": (
        "AWS-Lambda-Provisioned-Concurrency-ARM",
        [("0", "Inf", "0.0000040000")],
    ),
    "Lambda-Provisioned-GB-Second": ("AWS-Lambda-Duration-Provisioned", [("0", "Inf", "0.0000110000")]),
    "Lambda-Provisioned-GB-Second-ARM": (
        "AWS-Lambda-Duration-Provisioned-ARM",
        [("0", "Inf", "0.0000090000")],
    ),
    "Lambda-SnapStart-Cached-GB-S": ("AWS-Lambda-SnapStart", [("0", "Inf", "0.0000016000")]),
    "Lambda-SnapStart-Restored-GB": ("AWS-Lambda-SnapStart", [("0", "Inf", "0.0001500000")]),
    # Usage types that must not be taken for others.
    "Lambda-Storage-GB-Second": ("AWS-Lambda-Storage-Duration", [("0", "Inf", "0.0000000309")]),
    "Lambda-Edge-GB-Second": ("AWS-Lambda-Edge-Duration", [("0", "Inf", "0.0000500100")]),
    "Lambda-Edge-Request": ("AWS-Lambda-Edge-Requests", [("0", "Inf", "0.0000006000")]),
}
FREE = ("Global-Lambda-GB-Second", "AWS-Lambda-Duration", [("0", "400000", "0.0000000000")])


def offer(regions: dict[str, str] = PREFIXES) -> dict[str, Any]:
    """An offer file in the form of the documentation, version 1.0."""
    products: dict[str, Any] = {}
    on_demand: dict[str, Any] = {}

    def add(region: str, location: str, usage: str, group: str, steps: list[tuple[str, str, str]]) -> None:
        sku = f"SKU{len(products):013}"
        products[sku] = {
            "sku": sku,
            "productFamily": "Serverless",
            "attributes": {
                "servicecode": "AWSLambda", "location": region, "locationType": location, "group": group,
                "usagetype": usage, "operation": "", "regionCode": region, "servicename": "AWS Lambda",
            },
        }  # fmt: skip
        term = f"{sku}.JRTCKXETXF"
        dimensions = {
            f"{term}.{number}": {
                "rateCode": f"{term}.{number}", "description": usage, "beginRange": begin, "endRange": end,
                "unit": "Lambda-GB-Second", "pricePerUnit": {"USD": usd}, "appliesTo": [],
            }
            for number, (begin, end, usd) in enumerate(reversed(steps))
        }  # fmt: skip
        on_demand[sku] = {
            term: {
                "offerTermCode": "JRTCKXETXF", "sku": sku, "effectiveDate": "2027-04-01T00:00:00Z",
                "priceDimensions": dimensions, "termAttributes": {},
            }
        }  # fmt: skip

    for region, prefix in regions.items():
        for usage, (group, steps) in USAGES.items():
            add(region, "AWS Region", prefix + usage, group, steps)
    add("", "Any", *FREE)
    return {
        "formatVersion": "v1.0", "disclaimer": "…", "offerCode": "AWSLambda", "version": "20270420120000",
        "publicationDate": "2027-04-20T12:00:00Z", "products": products,
        "terms": {"OnDemand": on_demand},
    }  # fmt: skip


WHOLE = json.dumps(offer()).encode()


def without(usage: str, region: str) -> bytes:
    """The offer file without one usage type in one region."""
    document = offer()
    products = document["products"]
    document["products"] = {
        sku: product
        for sku, product in products.items()
        if (product["attributes"]["usagetype"], product["attributes"]["regionCode"])
        != (PREFIXES[region] + usage, region)
    }
    assert len(document["products"]) == len(products) - 1
    return json.dumps(document).encode()


def test_every_region_gets_its_prices(tmp_path: Path) -> None:
    """Requests, duration, provisioned concurrency and SnapStart come from the list, new regions too."""
    refresh(tmp_path / "prices.toml", BASE, lambda _: WHOLE, TODAY)
    prices = load_prices(tmp_path / "prices.toml")
    assert prices.regions.keys() == PREFIXES.keys()
    north = prices.region("eu-north-1", "arm64")
    assert north.request_usd == 3e-7
    x86, arm = north.lambda_["x86_64"], north.lambda_["arm64"]
    assert (x86.on_demand_gb_s_usd, x86.provisioned_gb_s_usd, x86.provisioned_duration_gb_s_usd) == (
        2e-5,
        5e-6,
        1.1e-5,
    )
    assert x86.tiers == (Tier(6e9, 0.9), Tier(15e9, 0.8))
    assert arm.tiers == (Tier(7.5e9, 0.9),)
    assert (north.snapstart_cache_gb_s_usd, north.snapstart_restore_gb_usd) == (1.6e-6, 1.5e-4)


def test_other_prices_stay_with_their_day(tmp_path: Path) -> None:
    """Containers and GPUs are not in the list: they stay, and their own age is warned about."""
    refresh(tmp_path / "prices.toml", BASE, lambda _: WHOLE, TODAY)
    prices = load_prices(tmp_path / "prices.toml")
    new, old = prices.regions["us-east-1"], BASE.regions["us-east-1"]
    assert (new.container, new.gpu, new.managed, new.microvm) == (
        old.container,
        old.gpu,
        old.managed,
        old.microvm,
    )
    assert str(BASE.read) in prices.stale(TODAY, "us-east-1")
    assert prices.stale(TODAY + timedelta(days=90), "eu-north-1") == ""
    assert str(TODAY) in prices.stale(TODAY + timedelta(days=91), "eu-north-1")


def test_a_second_refresh_writes_the_same_file(tmp_path: Path) -> None:
    """A week later the same list changes nothing but the day."""
    path = tmp_path / "prices.toml"
    refresh(path, BASE, lambda _: WHOLE, TODAY)
    first = path.read_text()
    refresh(path, load_prices(path), lambda _: WHOLE, TODAY + timedelta(days=7))
    assert path.read_text() == first.replace("2027-05-01", "2027-05-08")


def test_a_price_that_the_list_lacks_stays(tmp_path: Path) -> None:
    """Provisioned concurrency keeps the price and the day that it had."""
    fetch = without("Lambda-Provisioned-Concurrency", "eu-west-2")
    prices = refresh(tmp_path / "prices.toml", BASE, lambda _: fetch, TODAY)
    london, before = prices.regions["eu-west-2"], BASE.regions["eu-west-2"]
    assert london.lambda_["x86_64"].provisioned_gb_s_usd == before.lambda_["x86_64"].provisioned_gb_s_usd
    assert london.others_read == before.read


def test_an_architecture_without_prices_is_refused(tmp_path: Path) -> None:
    """A new region without arm64 has x86-64 alone, and says so to who asks for the other."""
    fetch = without("Lambda-GB-Second-ARM", "eu-north-1")
    prices = refresh(tmp_path / "prices.toml", BASE, lambda _: fetch, TODAY)
    assert prices.region("eu-north-1", "x86_64")
    with pytest.raises(PricesUnusable, match="of arm64 in eu-north-1, only of x86_64"):
        prices.region("eu-north-1", "arm64")


def doubled() -> bytes:
    document = offer()
    skus = [
        sku for sku, of in document["products"].items() if of["attributes"]["usagetype"] == "Lambda-GB-Second"
    ]
    document["products"]["AGAIN"] = document["products"][skus[0]]
    request = next(iter(document["terms"]["OnDemand"].values()))
    document["terms"]["OnDemand"]["AGAIN"] = request
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "broken or incomplete"),
        (b"<html>busy</html>", "broken or incomplete"),
        (b"{}", "broken or incomplete"),
        (WHOLE.replace(b'"AWSLambda", "version"', b'"AmazonEC2", "version"'), "expected AWSLambda"),
        (WHOLE.replace(b"0.0000200000", b"a few"), "Expected a decimal number"),
        (json.dumps(offer({"us-east-1": ""})).encode(), "has no price of arm64, x86_64 in us-east-2"),
        (without("Lambda-GB-Second-ARM", "eu-west-1"), "has no price of arm64 in eu-west-1"),
        (without("Request", "eu-west-1"), "has no price of arm64, x86_64 in eu-west-1"),
        (doubled(), "two prices of Lambda-GB-Second in us-east-1"),
    ],
)
def test_a_wrong_list_changes_nothing(tmp_path: Path, body: bytes, words: str) -> None:
    """The error says what was wrong, and the file is what it was, with no other file beside it."""
    path = tmp_path / "prices.toml"
    path.write_text("as before")
    with pytest.raises(PricesUnusable, match=words):
        refresh(path, BASE, lambda _: body, TODAY)
    assert (path.read_text(), [*tmp_path.iterdir()]) == ("as before", [path])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(end=st.integers(0, len(WHOLE) - 1))
def test_a_part_of_a_list_changes_nothing(tmp_path: Path, end: int) -> None:
    """No beginning of the file is taken for the whole."""
    path = tmp_path / "prices.toml"
    path.write_text("as before")
    with pytest.raises(PricesUnusable):
        refresh(path, BASE, lambda _: WHOLE[:end], TODAY)
    assert path.read_text() == "as before"


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure while writing leaves the old file, and no part of the new one."""
    path = tmp_path / "prices.toml"
    path.write_text("as before")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(PricesUnusable, match="No space left"):
        refresh(path, BASE, lambda _: WHOLE, TODAY)
    assert (path.read_text(), [*tmp_path.iterdir()]) == ("as before", [path])


def test_the_command_refreshes_and_the_planner_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`prices --refresh` writes a file, which `simulate --price-file` takes for a new region."""
    urls = []

    def fetch(url: str) -> bytes:
        urls.append(url)
        return WHOLE

    monkeypatch.setattr(command, "download", fetch)
    path = str(tmp_path / "prices.toml")
    run = CliRunner().invoke
    printed = run(main, ["prices", "--refresh", path])
    assert (printed.exit_code, urls) == (0, [OFFER])
    assert "eu-north-1" in printed.stdout and "11 regions" in printed.stderr
    assert run(main, ["prices", "--price-file", path]).stdout == printed.stdout
    assert "eu-north-1" in json.loads(run(main, ["prices", "--price-file", path, "--json"]).stdout)["regions"]
    traffic = ["simulate", "--rps", "1", "--hours", "0.1", "--region", "eu-north-1"]
    refused = run(main, traffic)
    assert refused.exit_code == 1 and "coldframe prices --refresh" in refused.stderr
    assert run(main, [*traffic, "--price-file", path]).exit_code == 0


def test_the_command_says_what_could_not_be_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed download exits with 1 and names the address."""

    def fetch(url: str) -> bytes:
        raise PricesUnusable(f"{url} answers 503, expected 200. Try again later.")

    monkeypatch.setattr(command, "download", fetch)
    printed = CliRunner().invoke(main, ["prices", "--refresh", str(tmp_path / "prices.toml")])
    assert printed.exit_code == 1 and OFFER in printed.stderr
    assert not [*tmp_path.iterdir()]
