"""`coldframe simulate`: what Lambda would do with a trace."""

from __future__ import annotations

from typing import Any

import click

from coldframe.capacity import limits
from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.switches import Switches
from local.commands.outputs import json_option
from local.commands.rules import lifetimes, rate_switches
from local.commands.traffic import Traffic, traffic_options

_MANY_INVOCATIONS = 1_000_000  # the simulator needs seconds for them


@click.command()
@traffic_options
@click.option(
    "--memory-mb",
    default=limits.VCPU.value,
    show_default=True,
    type=click.IntRange(limits.MIN_MEMORY.value, limits.MEMORY.value),
)
@click.option(
    "--provisioned",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Provisioned concurrency of each function.",
)
@click.option("--snapstart", is_flag=True, help="Environments start from a snapshot.")
@click.option(
    "--reserved", type=click.IntRange(0), help="Reserved concurrency of each function.  [default: nothing]"
)
@click.option(
    "--account-concurrency", default=limits.CONCURRENCY.value, show_default=True, type=click.IntRange(1)
)
@click.option(
    "--version",
    "shares",
    multiple=True,
    metavar="NAME=SHARE",
    help="A version to which an alias with weights sends this share of requests; repeatable.",
)
@click.option(
    "--at",
    "change_arguments",
    multiple=True,
    type=(click.FloatRange(0), str),
    metavar="SECONDS CHANGE",
    help="Change at a time after the start: provisioned=N, reserved=N, reserved=none or deploy; repeatable.",
)
@click.option(
    "--crash-share",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of invocations that end with the loss of their environment.",
)
@click.option("--warm", default=0, show_default=True, type=click.IntRange(0), help="Held by pings.")
@lifetimes
@rate_switches
@click.option("--engine", default="auto", show_default=True, type=click.Choice(("auto", "python", "numba")))
@json_option
def simulate(
    memory_mb: int,
    provisioned: int,
    snapstart: bool,
    reserved: int | None,
    account_concurrency: int,
    shares: tuple[str, ...],
    change_arguments: tuple[tuple[float, str], ...],
    crash_share: float,
    warm: int,
    idle_expiry: IdleExpiry,
    max_age_s: float | None,
    switches: Switches,
    engine: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Cold starts, throttles, latency and USD of a trace, in virtual time.

    Every function of the trace has the same settings and versions; together they share the account.
    """
    from local.commands.events import changes, versions
    from local.planner.scenarios.scenario import Scenario, play, table

    if provisioned and snapstart:
        raise click.UsageError("SnapStart and provisioned concurrency exclude each other on Lambda.")
    if len(shares) > 1 and (
        provisioned or any(what.startswith("provisioned") for _, what in change_arguments)
    ):
        raise click.UsageError("An alias with weights cannot have provisioned concurrency. Leave one out.")
    if warm and (shares or crash_share):
        raise click.UsageError("--warm is for one version, without --version and --crash-share.")
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
        changes=changes(change_arguments),
        versions=versions(shares),
        crash_share=crash_share,
        warm=warm,
        seed=traffic.seed,
    )
    prices, warning = traffic.prices()
    if warning:
        click.echo(warning, err=True)
    trace = traffic.trace()
    if warm and len(trace.functions) > 1:
        raise click.UsageError("--warm is for one function: name it with --function.")
    if len(trace) > _MANY_INVOCATIONS:
        click.echo(f"simulating {len(trace):,} invocations …", err=True)
    played = play(trace, traffic.measured(), scenario, engine)
    if as_json:
        click.echo(played.json(prices, traffic.architecture))
    else:
        click.echo(table(played, prices, traffic.architecture), nl=False)
