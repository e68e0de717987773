"""`coldframe bench …`: nothing is imported before it is needed."""

import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from local.paths import ROOT, model_dir

if TYPE_CHECKING:
    from bench.benchmarks.cold import ColdOptions
    from bench.reporting.records import Results

Command = TypeVar("Command", bound=Callable[..., Any])

RESULTS = ROOT / "bench" / "results"


@click.group()
def bench() -> None:
    """Measure, against a floor taken in the same run."""
    # Like Ctrl-C: what was started to be measured is ended first.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def _out(name: str) -> Callable[[Command], Command]:
    """The option of every measurement: where its raw lines go."""
    return click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        default=RESULTS / name,
        help=f"Raw file, compressed if it ends in .gz; default: bench/results/{name}.",
    )


_ENVIRONMENTS = click.option(
    "--environments",
    type=click.Path(path_type=Path),
    default=ROOT / ".venv-peers",
    help="Where peers are installed; default: .venv-peers.",
)
_SEED = click.option("--seed", default=0, show_default=True, help="Of all that is drawn by chance.")


@bench.command()
@click.option(
    "--samples",
    default=None,
    type=click.IntRange(3, 10_000),
    help="Fresh processes of each kind; default: 30, with --check 15.",
)
@click.option("--check", is_flag=True, help="Measure only what has a budget; fail when one is exceeded.")
@click.option("--url", default="", help="Cold starts behind this address instead of fresh processes.")
@click.option(
    "--idle-s",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0),
    help="With --url: pause before each.",
)
@click.option("--image", default="", help="Cold starts in a fresh container of this image, by docker.")
@_out("cold.jsonl")
@_SEED
def cold(samples: int | None, check: bool, url: str, idle_s: float, image: str, out: Path, seed: int) -> None:
    """Cold starts: fresh processes to their first answer, beside an import floor."""
    from bench.benchmarks.cold import ColdOptions, run

    _say_missing()
    options = ColdOptions(model_dir(), samples or (15 if check else 30), seed, out, checked_only=check)
    if url or image:
        _cold_elsewhere(options, url, idle_s, image)
        return
    run(options)
    from bench.reporting.budgets import load_budgets, spent
    from bench.reporting.records import read_results
    from bench.reporting.tables import budget_table, cold_table

    results, budgets = read_results(out), load_budgets()
    click.echo(cold_table(results, budgets))
    rows = spent(results, budgets)
    click.echo(budget_table(rows))
    click.echo(f"Raw lines: {out}")
    exceeded = [row for row in rows if row.exceeded]
    for row in exceeded:
        click.echo(f"Over budget: {row}", err=True)
    if check and exceeded:
        sys.exit(1)


@bench.command()
@click.option("--url", default="", help="A running target; default: `coldframe up` is started and stopped.")
@click.option(
    "--slo-ms",
    default=300.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Bound of the 99th percentile.",
)
@click.option(
    "--success",
    default=0.999,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of requests that must succeed.",
)
@click.option(
    "--start-rps", default=20.0, show_default=True, type=click.FloatRange(0.1), help="First rate tried."
)
@click.option(
    "--limit-rps",
    default=10_000.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="No higher rate is tried.",
)
@click.option(
    "--requests", default=600, show_default=True, type=click.IntRange(10), help="Counted at each rate."
)
@click.option(
    "--arrivals", default="poisson", show_default=True, help="`poisson`, `constant`, or a CSV file to replay."
)
@click.option(
    "--texts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='What is sent: {"text": "…"} per line.',
)
@click.option(
    "--duplicates",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of texts sent before, with the cache on.",
)
@_out("load.jsonl")
@_SEED
def load(arrivals: str, out: Path, seed: int, slo_ms: float, success: float, **given: Any) -> None:
    """The highest offered rate that holds the objective, open loop, without and with the cache."""
    from bench.benchmarks.load import LoadOptions, run
    from bench.loader.verdict import Slo
    from bench.reporting.tables import load_table
    from coldframe.capacity.arrivals import TraceUnreadable, arrivals_by_name

    _say_missing()
    try:
        given |= {"arrivals": arrivals_by_name(arrivals), "arrivals_name": arrivals}
    except TraceUnreadable as exc:
        raise click.BadParameter(str(exc), param_hint="--arrivals") from exc
    run(LoadOptions(model_dir(), out, seed, Slo(bound_ms=slo_ms, success=success), **given))
    _show(load_table, out)


@bench.command()
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Turns of everyone.")
@click.option(
    "--texts",
    default=100,
    show_default=True,
    type=click.IntRange(20),
    help="Sent in each turn, one by one and at full load.",
)
@click.option(
    "--concurrency",
    default=8,
    show_default=True,
    type=click.IntRange(1),
    help="Callers at once, for throughput.",
)
@click.option("--only", multiple=True, help="A folder of bench/peers; may be repeated. Default: all.")
@_ENVIRONMENTS
@_out("compare.jsonl")
@_SEED
def compare(out: Path, seed: int, **given: Any) -> None:
    """Peers side by side: cold start, one caller, full load, memory, installed size."""
    from bench.benchmarks.compare import CompareOptions, run
    from bench.reporting.tables import compare_table

    _say_missing()
    run(CompareOptions(model_dir(), out, seed, **given))
    _show(compare_table, out)


@bench.command()
@_ENVIRONMENTS
@_out("encoder.jsonl")
def encoder(out: Path, environments: Path) -> None:
    """The encoder beside others of the same weights, and beside this machine's peak."""
    from bench.benchmarks.encoder import EncoderOptions, run
    from bench.reporting.tables import encoder_table

    _say_missing()
    run(EncoderOptions(model_dir(), out, environments))
    _show(encoder_table, out)


@bench.command()
@click.option("--texts", default=300, show_default=True, type=click.IntRange(20), help="One invocation each.")
@_out("cost.jsonl")
@_SEED
def cost(out: Path, seed: int, texts: int) -> None:
    """What a million predictions cost, from durations and memory measured here."""
    from bench.benchmarks.cost import run
    from bench.reporting.tables import cost_table

    _say_missing()
    run(model_dir(), out, seed, texts)
    _show(cost_table, out)


@bench.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Turns of both loaders.")
@click.option("--requests", default=300, show_default=True, type=click.IntRange(20), help="In each turn.")
@click.option(
    "--rate-rps", default=20.0, show_default=True, type=click.FloatRange(0.1), help="Of the scenario Server."
)
@_ENVIRONMENTS
@_out("loadgen.jsonl")
@_SEED
def loadgen(out: Path, seed: int, **given: Any) -> None:
    """MLPerf LoadGen beside our own loader, on the same server."""
    from bench.benchmarks.loadgen import LoadGenOptions, run
    from bench.reporting.tables import loadgen_table

    _say_missing()
    run(LoadGenOptions(model_dir(), out, seed, **given))
    _show(loadgen_table, out)


@bench.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=RESULTS / "report.html",
    help="The page; default: bench/results/report.html.",
)
@click.option("--docs", is_flag=True, help="Also write the tables of README.md and docs/benchmarks.md anew.")
def report(files: tuple[Path, ...], out: Path, docs: bool) -> None:
    """Raw FILES to one page that needs nothing else; default: bench/results, else bench/published."""
    from bench.reporting.report import PUBLISHED, fill, markdown, raw_files, read_all, write_page

    _say_missing()
    results = read_all(files or raw_files(RESULTS) or raw_files(PUBLISHED))
    write_page(results, out)
    for document in (ROOT / "README.md", ROOT / "docs" / "benchmarks.md") if docs else ():
        document.write_text(fill(document.read_text(), markdown(results)))
    click.echo(str(out))


def _cold_elsewhere(options: "ColdOptions", url: str, idle_s: float, image: str) -> None:
    from bench.reporting.budgets import load_budgets
    from bench.reporting.tables import cold_table
    from bench.targets.cold_targets import run_container, run_http

    path = run_http(options, url, idle_s) if url else run_container(options, image)
    _show(partial(cold_table, budgets=load_budgets()), path)


def _show(table: "Callable[[Results], str]", path: Path) -> None:
    """The table of a raw file, and where that is."""
    from bench.reporting.records import read_results

    click.echo(table(read_results(path)))
    click.echo(f"Raw lines: {path}")


def _say_missing() -> None:
    """What benchmarks need beside the rest is installed by `make bench`; said before anything is measured."""
    if missing := [name for name in ("plotly", "scipy") if find_spec(name) is None]:
        raise click.ClickException(
            f"{missing[0]} is not installed. Run `make bench-setup`, or install bench/requirements.txt."
        )


@bench.command("emulator")
@click.option(
    "--requests",
    default=12_000,
    show_default=True,
    type=click.IntRange(120),
    help="Of each measurement.",
)
def emulator(requests: int) -> None:
    """The emulator's own latency and throughput, beside a bare uvicorn."""
    from bench.benchmarks.emulator import run

    run(requests)


@bench.command()
@click.argument("image", default="coldframe")
@click.option(
    "--samples", default=5, show_default=True, type=click.IntRange(1, 1000), help="Fresh containers."
)
def image(image: str, samples: int) -> None:
    """The container IMAGE: its size, what a cold start reads, and how long one takes."""
    from bench.benchmarks.image import run

    run(image, samples)


@bench.command()
@click.option("--seconds", default=3.0, show_default=True, type=click.FloatRange(0.1), help="Of each size.")
def cpu(seconds: float) -> None:
    """How well `up --cpu-from-memory` keeps its promise."""
    from bench.targets.cpu_share import run

    run(seconds)


@bench.command()
@click.option(
    "--requests", default=20, show_default=True, type=click.IntRange(4, 10_000), help="Of each mix of texts."
)
@click.option("--budget", type=click.IntRange(1), help="Tokens of a pass; default: measured here.")
@_SEED
def batching(requests: int, budget: int | None, seed: int) -> None:
    """Batching inside a request: one text at a time, fixed sizes and the budgeted plan, in one run."""
    from bench.benchmarks.batching import run

    run(model_dir(), requests, budget, seed)


@bench.command()
@click.option(
    "--samples", default=15, show_default=True, type=click.IntRange(3, 1000), help="Fresh processes."
)
def memory(samples: int) -> None:
    """A served environment: milliseconds of its session, peak memory after requests of every size."""
    from bench.benchmarks.memory import run

    run(model_dir(), samples)


@bench.command()
def road() -> None:
    """Files, functions, lines and depth of the code that one request runs through, by kind of request."""
    from bench.benchmarks.road import over_budget, road_table, run
    from bench.reporting.budgets import load_budgets

    roads, budgets = run(model_dir()), load_budgets().road
    click.echo(road_table(roads, budgets), nl=False)
    exceeded = over_budget(roads, budgets)
    for line in exceeded:
        click.echo(f"Over budget: {line}", err=True)
    if exceeded:
        sys.exit(1)


@bench.command("cache-faults")
@click.option(
    "--requests", default=40, show_default=True, type=click.IntRange(10, 10_000), help="For each fault."
)
@_SEED
def cache_faults(requests: int, seed: int) -> None:
    """The shared table down, slow, throttling, wrong or stale, beside no table at all, in one run."""
    if find_spec("moto") is None:
        raise click.ClickException(
            "moto is not installed. Run `make test`, or install tests/requirements.txt."
        )
    from bench.benchmarks.cache_faults import run

    run(model_dir(), requests, seed)
