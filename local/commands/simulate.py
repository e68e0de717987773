"""`coldframe simulate`: what Lambda would do with a trace."""

from __future__ import annotations

from typing import Any

import click

from coldframe.capacity import limits
from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.switches import Switches
from local.commands.rules import lifetimes, rate_switches
from local.commands.traffic import Traffic, traffic_options


@click.command()
@traffic_options
@click.option(
    "--memory-mb",
    default=limits.VCPU.value,
    show_default=True,
    type=click.IntRange(limits.MIN_MEMORY.value, limits.MEMORY.value),
)
@click.option("--provisioned", default=0, show_default=True, type=click.IntRange(0), help="Of each function.")
@click.option("--snapstart", is_flag=True, help="Environments start from a snapshot.")
@click.option("--reserved", type=click.IntRange(0), help="Of each function.  [default: nothing]")
@click.option(
    "--account-concurrency", default=limits.CONCURRENCY.value, show_default=True, type=click.IntRange(1)
)
@lifetimes
@rate_switches
@click.option("--engine", default="auto", show_default=True, type=click.Choice(("auto", "python", "numba")))
@click.option("--json", "as_json", is_flag=True, help="All numbers, as JSON.")
def simulate(
    memory_mb: int,
    provisioned: int,
    snapstart: bool,
    reserved: int | None,
    account_concurrency: int,
    idle_expiry: IdleExpiry,
    max_age_s: float | None,
    switches: Switches,
    engine: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Cold starts, throttles, latency and USD of a trace, in virtual time.

    Every function of the trace has one version and the same settings; together they share the account.
    """
    from local.planning.scenario import Scenario, play, table

    if provisioned and snapstart:
        raise click.UsageError("SnapStart and provisioned concurrency exclude each other on Lambda.")
    traffic = Traffic(**options)
    scenario = Scenario(
        memory_mb=memory_mb,
        provisioned=provisioned,
        snapstart=snapstart,
        reserved=reserved,
        account_concurrency=account_concurrency,
        idle_expiry=idle_expiry,
        max_age_s=max_age_s,
        switches=switches,
        seed=traffic.seed,
    )
    prices, warning = traffic.prices()
    if warning:
        click.echo(warning, err=True)
    played = play(traffic.trace(), traffic.measured(), scenario, engine)
    if as_json:
        click.echo(played.json(prices, traffic.architecture))
    else:
        click.echo(table(played, prices, traffic.architecture), nl=False)
