"""The warmer's settings, from its environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from coldframe.warming.costs import ping_usd, provisioned_usd
from coldframe.warming.decision import Guards
from coldframe.warming.policy import SLOT_S, HoldCosts

_MB_PER_GB = 1024


@dataclass(frozen=True)
class Predicting:
    """Settings of the forecast. ping, provision: cost of holding one environment for a slot each way."""

    function: str
    alias: str
    table: str
    guards: Guards
    ping: HoldCosts
    provision: HoldCosts


class Prices(Protocol):
    """Prices of one architecture, from `coldframe.capacity.prices`."""

    @property
    def request_usd(self) -> float: ...
    @property
    def on_demand_gb_s_usd(self) -> float: ...
    @property
    def provisioned_gb_s_usd(self) -> float: ...


def predicting(environ: Mapping[str, str], of_architecture: Mapping[str, Prices]) -> Predicting | None:
    """The settings; None when the warmer pings at a fixed rate."""
    if environ.get("PREDICTION", "off") != "on":
        return None
    prices = of_architecture[environ["ARCHITECTURE"]]
    gb, cold_usd = int(environ["MEMORY_MB"]) / _MB_PER_GB, float(environ["COLD_START_USD"])
    by_ping = ping_usd(gb, prices.on_demand_gb_s_usd, prices.request_usd)
    return Predicting(
        environ["FUNCTION_NAME"],
        environ["ALIAS"],
        environ["TABLE"],
        Guards(
            least=int(environ["WARM_MINIMUM"]),
            most=int(environ["WARM_MAXIMUM"]),
            day_usd=float(environ["WARM_USD_PER_DAY"]),
            guaranteed=int(environ["WARM_GUARANTEED"]),
            fixed=int(environ["WARM_ENVIRONMENTS"]),
        ),
        HoldCosts(by_ping, cold_usd),
        HoldCosts(provisioned_usd(gb, prices.provisioned_gb_s_usd, SLOT_S), cold_usd),
    )
