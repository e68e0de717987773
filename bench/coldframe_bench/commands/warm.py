"""`coldframe bench warm`: warmers side by side on traces, in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coldframe.capacity import limits
from coldframe_local.commands.outputs import json_option, print_json, with_progress
from coldframe_local.commands.scenario_file import scenario_options
from coldframe_local.commands.scenario_settings import Settings

if TYPE_CHECKING:
    from coldframe_bench.warming.demand import Demand

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--replay",
    "traces",
    multiple=True,
    type=_FILE,
    help="Trace to replay; repeatable, and the same as TRACE.",
)
@click.argument("more_traces", nargs=-1, type=_FILE, metavar="[TRACE]…")
@click.option(
    "--made",
    "shapes",
    multiple=True,
    type=click.Choice(("constant", "diurnal", "bursts", "on-off")),
    help="Replay five synthetic functions of this shape for four days; repeatable.",
)
@click.option(
    "--fit",
    "fitted",
    type=_FILE,
    help="Trace to learn the forecast's first weights from, which are printed; nothing is replayed."
    "  [default: none]",
)
@click.option(
    "--functions",
    default="all",
    show_default=True,
    type=click.Choice(("all", "odd", "even")),
    help="Functions of a trace to replay: all, or every second from the first (odd) or second (even). The "
    "built-in weights were learnt on the odd functions of FeMux's sample of Azure 2019.",
)
@click.option(
    "--slot-s",
    default=60.0,
    show_default=True,
    type=click.FloatRange(1.0, 3600.0),
    help="Seconds between two decisions of a policy; shorter slots follow the traffic more closely.",
)
@click.option(
    "--memory-mb",
    default=limits.VCPU.value,
    show_default=True,
    type=click.IntRange(0, limits.MEMORY.value),
    help="Memory of an environment in MB; 0: the trace's, or 1024 without one.",
)
@click.option(
    "--usd",
    is_flag=True,
    help="Simulate cold share and USD on Lambda, too, with pings and provisioned concurrency; takes longer.",
)
@click.option(
    "--cold-usd",
    type=click.FloatRange(0, min_open=True),
    help="Value of one avoided cold start, in USD.  [default: 0.001]",
)
@scenario_options()
@click.option(
    "--raw",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for every line as JSON, compressed if it ends in .gz.  [default: no file]",
)
@json_option
def warm(
    traces: tuple[Path, ...],
    more_traces: tuple[Path, ...],
    shapes: tuple[str, ...],
    fitted: Path | None,
    functions: str,
    slot_s: float,
    memory_mb: int,
    usd: bool,
    cold_usd: float | None,
    raw: Path | None,
    as_json: bool,
    settings: Settings,
) -> None:
    """Compare warmers on each TRACE: the cost of every published policy, and of ours, with its cold starts.

    The cost is RUM, of the published warmer FeMux: cold starts, and gigabyte-seconds of idle environments, in
    one number. "cold ×4" counts cold starts four times. docs/warming.md has the formula.

    Every policy decides for a slot from what came before it alone. The first two hours, or a quarter of a
    short trace, are for learning and are not counted. A name that ends in * is in no paper.
    """
    from coldframe.warming.costs import COLD_USD
    from coldframe_bench.warming.demand import demands, made_demands
    from coldframe_bench.warming.fit import fit
    from coldframe_bench.warming.on_lambda import Outcome, Terms, outcome_table, outcomes
    from coldframe_bench.warming.replay import Line, replay, table, write_raw

    paths = (*traces, *more_traces)
    if (fitted is None) == (not paths and not shapes):
        raise click.UsageError("Name traces with --replay, or shapes with --made; or a trace with --fit.")
    if fitted is not None:
        rows = fit(_chosen(demands(fitted, slot_s, settings.seed), functions), settings.seed, _with_functions)
        if as_json:
            print_json(rows)
        else:
            click.echo("\n".join(f"{row}," for row in rows))
        return
    tell = (lambda _: None) if as_json else click.echo
    lines: list[Line] = []
    played: list[Outcome] = []
    of_traces = [(path.name, partial(demands, path, slot_s, settings.seed)) for path in paths]
    of_traces += [(shape, partial(made_demands, shape, slot_s, settings.seed)) for shape in shapes]
    for name, read in of_traces:
        selection = _chosen(read(), functions)
        scores = list(
            replay(
                name,
                with_progress(selection, len(selection), "function", "replaying"),
                memory_mb or None,
            )
        )
        tell(f"{name}: {len(selection)} functions, {functions}; slots of {slot_s:g} s")
        tell(table(scores))
        lines += scores
        if usd:
            measured = settings.measured()
            start_ms = measured.usual_init_ms()
            tell(f"init phases: {start_ms:.0f} ms, {measured.source}")
            prices, architecture = settings.prices(), settings.architecture
            terms = Terms(
                memory_mb or 1024, start_ms / 1e3, prices, architecture, cold_usd or COLD_USD, settings.seed
            )
            simulated = with_progress(selection, len(selection), "function", "simulating")
            ended = list(outcomes(simulated, terms))
            tell(outcome_table(ended, terms.cold_usd))
            played += ended
    if raw is not None:
        write_raw(
            raw,
            {"slot_s": slot_s, "memory_mb": memory_mb, "functions": functions, "seed": settings.seed},
            map(asdict, lines),
        )
    if as_json:
        print_json({"policies": lines, "on_lambda": played})


def _chosen(all_of_them: list[Demand], functions: str) -> list[Demand]:
    return all_of_them if functions == "all" else all_of_them[functions == "even" :: 2]


def _with_functions(demands: Sequence[Demand]) -> Iterable[Demand]:
    return with_progress(demands, len(demands), "function", "learning")
