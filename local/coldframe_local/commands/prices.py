"""`coldframe prices`: prices by region, and their refresh from AWS's price list."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coldframe_local.commands.outputs import OutFile, json_option, print_json

if TYPE_CHECKING:
    from coldframe_local.planner.scenarios.prices import Prices

_ROW = "{:<16}{:>10}{:>10}{:>10}{:>10}{:>10}  {:<10}{}"


@click.command()
@click.option(
    "--refresh",
    type=OutFile(),
    metavar="FILE",
    help="Write the prices of every region to this file, from AWS's public price list, without credentials."
    " plan, simulate and homes read them by `--price-file FILE`. Prices that the list does not tell stay."
    "  [default: nothing is downloaded]",
)
@click.option(
    "--price-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of prices to show.  [default: the file of --refresh, else Coldframe's own prices]",
)
@json_option
def prices(refresh: Path | None, price_file: Path | None, as_json: bool) -> None:
    """Show Lambda's prices by region, or refresh them from AWS's price list.

    USD for a million requests and for a million GB-seconds.
    """
    from coldframe_local.planner.scenarios.price_list import refresh as refresh_file
    from coldframe_local.planner.scenarios.prices import PRICES, load_prices

    base = price_file or (refresh if refresh and refresh.exists() else PRICES)
    table = load_prices(base)
    if refresh is not None:
        table = refresh_file(refresh, table, download, datetime.now(UTC).date())
        click.echo(f"{refresh}: prices of {len(table.regions)} regions", err=True)
    if as_json:
        print_json(table)
    else:
        _print(table)


def _print(table: Prices) -> None:
    heads = ("requests", "x86_64", "arm64", "kept x86", "kept arm", "SnapStart", "read")
    click.echo(_ROW.format("region", *heads))
    for name, region in table.regions.items():
        x86, arm = (region.lambda_.get(architecture) for architecture in ("x86_64", "arm64"))
        usd = (
            region.request_usd,
            *(of.on_demand_gb_s_usd if of else None for of in (x86, arm)),
            *(of.provisioned_gb_s_usd if of else None for of in (x86, arm)),
        )
        cells = ("-" if price is None else f"{price * 1e6:.4g}" for price in usd)
        click.echo(
            _ROW.format(name, *cells, "yes" if region.has_snapstart else "-", region.read or table.read)
        )


def download(url: str, pause_s: float = 0.5) -> bytes:
    """The whole content of an address, in at most four attempts.

    pause_s: pause before the third attempt, doubled before the fourth. Raises PricesUnusable.
    """
    import urllib3

    from coldframe_local.planner.scenarios.prices import PricesUnusable

    try:
        answer = urllib3.request(
            "GET", url, timeout=60.0, retries=urllib3.Retry(3, backoff_factor=pause_s / 2)
        )
    except urllib3.exceptions.HTTPError as exc:
        reason = getattr(exc, "reason", exc)
        raise PricesUnusable(
            f"{url} cannot be downloaded: {reason}. Check the connection, or a proxy."
        ) from exc
    if answer.status != 200:
        raise PricesUnusable(f"{url} answers {answer.status}, expected 200. Try again later.")
    return answer.data
