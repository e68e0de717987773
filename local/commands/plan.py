"""`coldframe plan`: which lever against cold starts is right for a traffic."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from coldframe.capacity import limits
from local.commands.outputs import OutFile, json_option, require, with_progress
from local.commands.traffic import Traffic, traffic_options

_SIZES_MB = (512, 1024, limits.VCPU.value, 3008)
_MOST_SCALED = 1_000_000

T = TypeVar("T")


@click.command()
@traffic_options
@click.option(
    "--p99-ms",
    default=300.0,
    show_default=True,
    type=click.FloatRange(1),
    help="Largest p99 of the response time, in ms.",
)
@click.option(
    "--cold-share",
    default=0.01,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of requests that may start cold.",
)
@click.option(
    "--budget-usd", type=click.FloatRange(0), help="Largest cost of a month, in USD.  [default: none]"
)
@click.option(
    "--memory-mb",
    "memories_mb",
    multiple=True,
    default=_SIZES_MB,
    show_default=True,
    type=click.IntRange(limits.MIN_MEMORY.value, limits.MEMORY.value),
    help="A size to try; repeatable.",
)
@click.option(
    "--traced-memory-mb",
    default=limits.VCPU.value,
    show_default=True,
    type=click.IntRange(limits.MIN_MEMORY.value, limits.MEMORY.value),
    help="The size at which the durations of the trace were measured.",
)
@click.option(
    "--further-ms",
    type=click.FloatRange(0),
    help="Requests may wait and share an invocation: what each but the first adds.  [default: they may not]",
)
@click.option("--html", type=OutFile(), help="A page with curves, too; needs the extra `plan`.")
@json_option
def plan(
    p99_ms: float,
    cold_share: float,
    budget_usd: float | None,
    memories_mb: tuple[int, ...],
    traced_memory_mb: int,
    further_ms: float | None,
    html: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """The cheapest way to hold p99 and cold starts on your traffic, and why each other way lost.

    Every lever is simulated on the trace with several settings and memory sizes.
    """
    from local.planner import planner as planning
    from local.planner.scenarios.candidates import Goal
    from local.planner.scenarios.scenario import Scenario

    if html is not None:
        require("plotly", "plan")
    traffic = Traffic(**options)
    prices, warning = traffic.prices()
    if warning:
        click.echo(warning, err=True)
    trace = traffic.trace()
    planner = planning.Planner(
        traffic.measured(),
        prices,
        traffic.architecture,
        Goal(p99_ms, cold_share, budget_usd),
        memories_mb,
        Scenario(memories_mb[0], seed=traffic.seed),
        traced_memory_mb,
        further_ms,
    )
    result = planner.plan(trace, _with_steps)
    click.echo(planning.as_json(result) if as_json else planning.table(result), nl=as_json)
    if html is not None:
        from local.planner.page import page

        html.write_text(page(planner, trace, result, _MOST_SCALED, _with_steps))
        click.echo(f"{html}: the curves", err=True)


def _with_steps(steps: Iterable[T], total: int) -> Iterable[T]:
    return with_progress(steps, total, "step", "simulating")
