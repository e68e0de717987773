"""`coldframe plan`: which lever against cold starts is right for a traffic."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import click

from coldframe_local.commands.outputs import OutFile, json_option, require, with_progress
from coldframe_local.commands.scenario_file import COMMENTED_FILE, scenario_options
from coldframe_local.commands.scenario_settings import Settings

_MOST_SCALED = 1_000_000

T = TypeVar("T")


def _print_scenario(context: click.Context, _option: click.Parameter, is_set: bool) -> None:
    if is_set:
        click.echo(COMMENTED_FILE.read_text(encoding="utf-8"), nl=False)
        context.exit()


@click.command()
@scenario_options(
    *("trace", "from_cloudwatch", "rps", "shape", "hours", "p99_ms", "cold_share", "budget_usd"),
    *("region", "price_file"),
    memory_mb="sizes_mb",
)
@click.option(
    "--print-scenario",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_scenario,
    help="Print a scenario file with all settings and their defaults, and exit.",
)
@click.option(
    "--html",
    type=OutFile(),
    help="Page with curves to write, too; needs the extra `plan`.  [default: no page]",
)
@json_option
def plan(settings: Settings, html: Path | None, as_json: bool) -> None:
    """Find the cheapest way to hold p99 and cold starts on your traffic, and why each other way lost.

    Every lever is simulated on the trace with several settings and memory sizes.
    """
    from coldframe_local.planner import planner as planning
    from coldframe_local.planner.scenarios.candidates import Goal

    if html is not None:
        require("vl_convert", "plan")
    prices, trace = settings.prices(), settings.arrivals()
    planner = planning.Planner(
        settings.measured(),
        prices,
        settings.architecture,
        Goal(settings.p99_ms, settings.cold_share, settings.budget_usd),
        settings.sizes_mb,
        settings.scenario(settings.sizes_mb[0]),
        settings.traced_memory_mb,
        settings.further_ms,
    )
    result = planner.plan(trace, _with_steps)
    click.echo(planning.as_json(result) if as_json else planning.table(result), nl=as_json)
    if html is not None:
        from coldframe_local.planner.page import page

        html.write_text(page(planner, trace, result, _MOST_SCALED, _with_steps))
        click.echo(f"{html}: the curves", err=True)


def _with_steps(steps: Iterable[T], total: int) -> Iterable[T]:
    return with_progress(steps, total, "step", "simulating")
