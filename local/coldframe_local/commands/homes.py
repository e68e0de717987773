"""`coldframe homes`: what each platform of the server costs beside Lambda, and from when on it pays."""

from __future__ import annotations

import click

from coldframe_local.commands.outputs import json_option, print_json
from coldframe_local.commands.scenario_file import scenario_options
from coldframe_local.commands.scenario_settings import Settings

_POST_MS = 9.0  # docs/encoder.md, batches
_RATES = tuple(10.0**power for power in range(-1, 5))


@click.command()
@click.option(
    "--text-ms",
    type=click.FloatRange(0.001),
    help="One text on one virtual processor: `coldframe bench passes batch` tells rows per second.  [default:"
    f" {_POST_MS:g}, Coldframe's own for posts of 20 Newsgroups]",
)
@click.option("--texts", default=1, show_default=True, type=click.IntRange(1), help="Texts in one request.")
@click.option(
    "--request-ms",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Time of a request beside its texts, in ms.",
)
@click.option(
    "--sharing",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Throughput gain from sharing passes between requests (1.9: 1.9 times as many texts).",
)
@click.option(
    "--busy",
    default=0.7,
    show_default=True,
    type=click.FloatRange(0.05, 1),
    help="Share of time that a server is planned to be busy.",
)
@click.option(
    "--cpu",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.25, 16),
    help="Virtual processors of a container.",
)
@click.option(
    "--memory-mb",
    default=2048,
    show_default=True,
    type=click.IntRange(512),
    help="Memory of a container in MB.",
)
@click.option(
    "--gpu-texts-s",
    type=click.FloatRange(0, min_open=True),
    help="Measured throughput of a GPU, in texts per second.  [default: no row for a GPU]",
)
@click.option(
    "--texts-s",
    "rates",
    multiple=True,
    type=click.FloatRange(0, min_open=True),
    help="Load to compare at, in texts per second; repeatable.",
)
@scenario_options("architecture", "region", "price_file")
@json_option
def homes(
    text_ms: float | None,
    texts: int,
    request_ms: float,
    sharing: float,
    busy: float,
    cpu: float,
    memory_mb: int,
    gpu_texts_s: float | None,
    rates: tuple[float, ...],
    settings: Settings,
    as_json: bool,
) -> None:
    """USD a month of Lambda, of containers and of GPUs by texts per second, and the break-even points."""
    from coldframe_local.deploy.costs.costs import Work, costs
    from coldframe_local.deploy.costs.costs_table import numbers, table

    work = Work(text_ms or _POST_MS, texts, request_ms, sharing, busy)
    whose = "as given" if text_ms else "Coldframe's own for posts of 20 Newsgroups (docs/encoder.md)"
    durations = f"{work.text_ms:g} ms a text at one vCPU, {whose}; {settings.architecture}"
    figures = costs(settings.prices(), settings.architecture, work, cpu, memory_mb, gpu_texts_s)
    if as_json:
        print_json({"durations": durations, **numbers(figures, rates or _RATES)})
    else:
        click.echo(f"durations: {durations}\n\n{table(figures, rates or _RATES)}", nl=False)
