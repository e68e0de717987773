"""Commands that write a raw file, of which the published tables are made."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.commands.options import ENVIRONMENTS, RESULTS, SEED, out_option, require_bench_libraries, show
from local.paths import ROOT, model_dir

if TYPE_CHECKING:
    from bench.benchmarks.cold.measure import ColdOptions


@click.command()
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
    help="Pause before each cold start; only with --url.",
)
@click.option("--image", default="", help="Cold starts in a fresh container of this image, by docker.")
@out_option("cold.jsonl")
@SEED
def cold(samples: int | None, check: bool, url: str, idle_s: float, image: str, out: Path, seed: int) -> None:
    """Cold starts: fresh processes to their first answer, beside an import floor."""
    from bench.benchmarks.cold.measure import ColdOptions, run

    require_bench_libraries()
    options = ColdOptions(model_dir(), samples or (15 if check else 30), seed, out, checked_only=check)
    if url or image:
        _cold_elsewhere(options, url, idle_s, image)
        return
    run(options)
    from bench.benchmarks.cold.spent import spent
    from bench.benchmarks.cold.table import budget_table, cold_table
    from bench.records.budgets import load_budgets
    from bench.records.raw_files import read_results

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


@click.command()
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
    help='Texts to send: {"text": "…"} per line.',
)
@click.option(
    "--duplicates",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of texts sent before, with the cache on.",
)
@out_option("load.jsonl")
@SEED
def load(arrivals: str, out: Path, seed: int, slo_ms: float, success: float, **options: Any) -> None:
    """The highest offered rate that holds the objective, open loop, without and with the cache."""
    from bench.benchmarks.load import LoadOptions, load_table, run
    from bench.loader.verdict import Slo
    from coldframe.capacity.arrivals import TraceUnreadable, arrivals_by_name

    require_bench_libraries()
    try:
        options |= {"arrivals": arrivals_by_name(arrivals), "arrivals_name": arrivals}
    except TraceUnreadable as exc:
        raise click.BadParameter(str(exc), param_hint="--arrivals") from exc
    run(LoadOptions(model_dir(), out, seed, Slo(bound_ms=slo_ms, success=success), **options))
    show(load_table, out)


@click.command()
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
@ENVIRONMENTS
@out_option("compare.jsonl")
@SEED
def compare(out: Path, seed: int, **options: Any) -> None:
    """Peers side by side: cold start, one caller, full load, memory, installed size."""
    from bench.benchmarks.compare import CompareOptions, compare_table, run

    require_bench_libraries()
    run(CompareOptions(model_dir(), out, seed, **options))
    show(compare_table, out)


@click.command()
@ENVIRONMENTS
@out_option("encoder.jsonl")
def encoder(out: Path, environments: Path) -> None:
    """The encoder beside others of the same weights, and beside this machine's peak."""
    from bench.benchmarks.encoder import EncoderOptions, encoder_table, run

    require_bench_libraries()
    run(EncoderOptions(model_dir(), out, environments))
    show(encoder_table, out)


@click.command()
@click.option("--texts", default=300, show_default=True, type=click.IntRange(20), help="One invocation each.")
@out_option("cost.jsonl")
@SEED
def cost(out: Path, seed: int, texts: int) -> None:
    """Cost of a million predictions, from durations and memory measured here."""
    from bench.benchmarks.cost import cost_table, run

    require_bench_libraries()
    run(model_dir(), out, seed, texts)
    show(cost_table, out)


@click.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Turns of both loaders.")
@click.option("--requests", default=300, show_default=True, type=click.IntRange(20), help="In each turn.")
@click.option(
    "--rate-rps",
    default=20.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Requests per second in the scenario Server.",
)
@ENVIRONMENTS
@out_option("loadgen.jsonl")
@SEED
def loadgen(out: Path, seed: int, **options: Any) -> None:
    """MLPerf LoadGen beside our own loader, on the same server."""
    from bench.benchmarks.loadgen import LoadGenOptions, loadgen_table, run

    require_bench_libraries()
    run(LoadGenOptions(model_dir(), out, seed, **options))
    show(loadgen_table, out)


@click.command()
@click.option(
    "--workers", default=0, type=click.IntRange(0), help="Passes at a time; default: one for each core."
)
@click.option(
    "--seconds", default=6.0, show_default=True, type=click.FloatRange(0.2), help="Seconds at each rate."
)
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(1), help="Turns of every policy.")
@click.option(
    "--deadline-ms",
    default=500.0,
    show_default=True,
    type=click.FloatRange(1),
    help="Deadline of every request, in milliseconds.",
)
@click.option("--peers", is_flag=True, help="Also beside other servers with their own batching, over HTTP.")
@click.option("--only", multiple=True, help="Folder in bench/peers, only with --peers; may be repeated.")
@ENVIRONMENTS
@out_option("serve.jsonl")
@SEED
def serve(out: Path, seed: int, **options: Any) -> None:
    """Passes shared across requests: the scheduler beside a fixed delay and beside none, open loop."""
    from bench.benchmarks.serve.measure import ServeOptions, run
    from bench.benchmarks.serve.table import serve_table

    require_bench_libraries()
    run(ServeOptions(model_dir(), out, seed, **options))
    show(serve_table, out)


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=RESULTS / "report.html",
    help="The page; default: bench/results/report.html.",
)
@click.option(
    "--docs",
    is_flag=True,
    help="Also write the tables of README.md and docs/benchmarks.md anew, and the durations that plans use.",
)
def report(files: tuple[Path, ...], out: Path, docs: bool) -> None:
    """Raw FILES to one page that needs nothing else; default: bench/results, else bench/published."""
    from bench.reporting.report import PUBLISHED, fill, markdown, raw_files, read_all, write_page
    from local.planner.scenarios import timings

    require_bench_libraries()
    results = read_all(files or raw_files(RESULTS) or raw_files(PUBLISHED))
    write_page(results, out)
    for document in (ROOT / "README.md", ROOT / "docs" / "benchmarks.md") if docs else ():
        document.write_text(fill(document.read_text(), markdown(results)))
    if docs and "cost" in results:
        timings.PUBLISHED.write_text(timings.read_bench_cost(results["cost"].path).json())
    click.echo(str(out))


def _cold_elsewhere(options: "ColdOptions", url: str, idle_s: float, image: str) -> None:
    from bench.benchmarks.cold.elsewhere import run_container, run_http
    from bench.benchmarks.cold.table import cold_table
    from bench.records.budgets import load_budgets

    path = run_http(options, url, idle_s) if url else run_container(options, image)
    show(partial(cold_table, budgets=load_budgets()), path)


@click.command()
@click.option(
    "--texts", default=20_000, show_default=True, type=click.IntRange(64), help="How many are sent."
)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='Texts to send: {"text": "…"} per line; default: as `load`.',
)
@click.option(
    "--seconds",
    default=3.0,
    show_default=True,
    type=click.FloatRange(0.05),
    help="Seconds of each measurement.",
)
@click.option(
    "--pass-tokens",
    "passes",
    multiple=True,
    default=(8192, 32_768, 131_072),
    show_default=True,
    type=click.IntRange(256),
    help="Tokens of a pass; may be repeated.",
)
@click.option(
    "--threads",
    multiple=True,
    default=(1, 2),
    show_default=True,
    type=click.IntRange(1, 64),
    help="Number of threads that send work to the GPU; may be repeated.",
)
@click.option(
    "--peer-python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Python of an environment with sentence-transformers and CUDA's torch; default: no peer.",
)
@click.option(
    "--http/--no-http", "with_http", default=True, help="Whether `coldframe serve` is measured, too."
)
@out_option("gpu.jsonl")
@SEED
def gpu(out: Path, seed: int, **options: Any) -> None:
    """The encoder on an NVIDIA GPU: both graphs, texts to embeddings, over HTTP, beside a peer."""
    from bench.benchmarks.gpu.measure import GpuOptions, run
    from bench.benchmarks.gpu.table import gpu_table

    run(GpuOptions(model_dir(), out, seed, **options))
    show(gpu_table, out)


COMMANDS = (cold, load, compare, encoder, cost, loadgen, serve, gpu, report)
