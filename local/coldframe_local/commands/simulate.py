"""`coldframe simulate`: what Lambda would do with a trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from coldframe.capacity.limits import VCPU
from coldframe_local.commands.outputs import json_option
from coldframe_local.commands.scenario_file import scenario_options
from coldframe_local.commands.scenario_settings import Settings

if TYPE_CHECKING:
    from coldframe_local.planner.simulator.simulator import Change

_MANY_INVOCATIONS = 1_000_000  # the simulator needs seconds for them


@click.command()
@scenario_options(
    *("trace", "from_cloudwatch", "rps", "shape", "hours", "memory_mb", "snapstart"),
    *("region", "price_file"),
    provisioned="provisioned_concurrency",
    reserved="reserved_concurrency",
)
@json_option
def simulate(settings: Settings, as_json: bool) -> None:
    """Simulate a trace in virtual time: its cold starts, throttles, latency and USD.

    Every function of the trace has the same settings and versions; together they share the account.
    """
    from coldframe_local.planner.scenarios.scenario import play, table

    changes, versions = tuple(_changes(settings)), settings.versions or {}
    provisioned = settings.provisioned_concurrency or 0
    if provisioned and settings.snapstart:
        raise click.UsageError("SnapStart and provisioned concurrency exclude each other. Leave one out.")
    if versions and not any(versions.values()):
        raise click.UsageError("All weights of versions are 0. Give one version more.")
    may_provision = any(change.provisioned_concurrency is not None for change in settings.changes or ())
    if len(versions) > 1 and (provisioned or may_provision):
        raise click.UsageError("An alias with weights cannot have provisioned concurrency. Leave one out.")
    if settings.pings and (versions or settings.crash_share):
        raise click.UsageError("pings are for one version. Leave out versions and crash_share.")
    scenario = replace(
        settings.scenario(settings.memory_mb or VCPU.value),
        provisioned=provisioned,
        snapstart=bool(settings.snapstart),
        reserved=settings.reserved_concurrency,
        changes=changes,
        versions=tuple(versions.items()),
        crash_share=settings.crash_share,
        warm=settings.pings,
    )
    prices, trace = settings.prices(), settings.arrivals()
    if settings.pings and len(trace.functions) > 1:
        raise click.UsageError("pings are for one function. Name it as `function` in the scenario file.")
    if len(trace) > _MANY_INVOCATIONS:
        click.echo(f"simulating {len(trace):,} invocations …", err=True)
    played = play(trace, settings.measured(), scenario, settings.engine)
    if as_json:
        click.echo(played.json(prices, settings.architecture))
    else:
        click.echo(table(played, prices, settings.architecture), nl=False)


def _changes(settings: Settings) -> Iterator[Change]:
    from coldframe_local.planner.scenarios.scenario import ALL
    from coldframe_local.planner.simulator.provisioning import PROVISION, RECYCLE, RESERVE
    from coldframe_local.planner.simulator.simulator import Change

    for change in settings.changes or ():
        if change.deploy:
            yield Change(change.at_s, RECYCLE, ALL)
        if (level := change.provisioned_concurrency) is not None:
            yield Change(change.at_s, PROVISION, ALL, level)
        if (limit := change.reserved_concurrency) is not None:
            yield Change(change.at_s, RESERVE, ALL, -1 if limit == "none" else limit)
