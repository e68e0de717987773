"""Commands that write a raw file, of which the published tables are made."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from coldframe_bench.commands.options import (
    ENVIRONMENTS,
    FILE,
    RESULTS,
    SEED,
    Table,
    number,
    out_option,
    recorded,
    require_bench_libraries,
    show,
)
from coldframe_local.paths import ROOT, model_dir


@click.command()
@number("--samples", None, 3, 10_000, help="Fresh processes of each kind; default: 30, with --check 15.")
@click.option("--check", is_flag=True, help="Measure only what has a budget; fail when one is exceeded.")
@click.option("--url", default="", help="Address with the cold starts; default: fresh processes here.")
@number("--idle-s", 1.0, 0, help="Pause before each cold start; only with --url.")
@click.option("--image", default="", help="Image for fresh containers, by docker; default: none.")
@out_option("cold.jsonl")
@SEED
def cold(samples: int | None, check: bool, url: str, idle_s: float, image: str, out: Path, seed: int) -> None:
    """Cold starts: fresh processes to their first answer, beside an import floor."""
    require_bench_libraries()
    from coldframe_bench.benchmarks.cold.elsewhere import run_container, run_http
    from coldframe_bench.benchmarks.cold.measure import ColdOptions, run
    from coldframe_bench.benchmarks.cold.spent import spent
    from coldframe_bench.benchmarks.cold.table import budget_table, cold_table
    from coldframe_bench.records.budgets import load_budgets
    from coldframe_bench.records.raw_files import read_results

    budgets = load_budgets()
    options = ColdOptions(model_dir(), samples or (15 if check else 30), seed, out, checked_only=check)
    if url or image:
        path = run_http(options, url, idle_s) if url else run_container(options, image)
        show(partial(cold_table, budgets=budgets), path)
        return
    rows = spent(read_results(run(options)), budgets)
    show(lambda results: cold_table(results, budgets) + "\n" + budget_table(rows), out)
    exceeded = [row for row in rows if row.exceeded]
    for row in exceeded:
        click.echo(f"Over budget: {row}", err=True)
    if check and exceeded:
        sys.exit(1)


@click.command()
@click.option("--url", default="", help="A running target; default: `coldframe up` is started and stopped.")
@number("--slo-ms", 300.0, 0.1, help="Bound of the 99th percentile.")
@number("--success", 0.999, 0, 1, help="Share of requests that must succeed.")
@number("--start-rps", 20.0, 0.1, help="First rate tried.")
@number("--limit-rps", 10_000.0, 0.1, help="No higher rate is tried.")
@number("--requests", 600, 10, help="Counted at each rate.")
@click.option(
    "--arrivals", default="poisson", show_default=True, help="`poisson`, `constant`, or a CSV file to replay."
)
@click.option("--texts", type=FILE, help='Texts to send: {"text": "…"} per line; default: sentences.')
@number("--duplicates", 0.5, 0, 1, help="Share of texts sent before, with the cache on.")
@click.option(
    "--loadgen",
    is_flag=True,
    help="Compare our loader with MLPerf LoadGen instead: --requests in each of three rounds at --start-rps.",
)
@recorded("load.jsonl")
def load(arrivals: str, slo_ms: float, success: float, loadgen: bool, **options: Any) -> Table:
    """The highest offered rate that holds the objective, open loop, without and with the cache."""
    if loadgen:
        from coldframe_bench.benchmarks import loadgen as two_loaders

        chosen = {name: options[name] for name in ("model_dir", "out", "seed", "requests")}
        two_loaders.run(two_loaders.LoadGenOptions(**chosen, rate_rps=options["start_rps"]))
        return two_loaders.loadgen_table
    from coldframe.capacity.arrivals import TraceUnreadable, arrivals_by_name
    from coldframe_bench.benchmarks.load import LoadOptions, load_table, run
    from coldframe_bench.loader.verdict import Slo

    try:
        options |= {"arrivals": arrivals_by_name(arrivals), "arrivals_name": arrivals}
    except TraceUnreadable as exc:
        raise click.BadParameter(str(exc), param_hint="--arrivals") from exc
    run(LoadOptions(slo=Slo(bound_ms=slo_ms, success=success), **options))
    return load_table


@click.command()
@number("--rounds", 5, 1, help="Turns of everyone.")
@number("--texts", 100, 20, help="Sent in each turn, one by one and at full load.")
@number("--concurrency", 8, 1, help="Callers at once, for throughput.")
@click.option("--only", multiple=True, help="A folder of bench/peers; may be repeated. Default: all.")
@ENVIRONMENTS
@recorded("compare.jsonl")
def compare(**options: Any) -> Table:
    """Peers side by side: cold start, one caller, full load, memory, installed size."""
    from coldframe_bench.benchmarks.compare import CompareOptions, compare_table, run

    run(CompareOptions(**options))
    return compare_table


@click.command()
@ENVIRONMENTS
@recorded("encoder.jsonl")
def encoder(**options: Any) -> Table:
    """The encoder beside others of the same weights, and beside this machine's peak."""
    from coldframe_bench.benchmarks.encoder import encoder_table, run

    run(**options)
    return encoder_table


@click.command()
@number("--texts", 300, 20, help="One invocation each.")
@recorded("cost.jsonl")
def cost(**options: Any) -> Table:
    """Cost of a million predictions, from durations and memory measured here."""
    from coldframe_bench.benchmarks.cost import cost_table, run

    run(**options)
    return cost_table


@click.command()
@number("--workers", 0, 0, help="Passes at a time; 0: one for each core.")
@number("--seconds", 6.0, 0.2, help="Seconds at each rate.")
@number("--rounds", 1, 1, help="Turns of every policy.")
@number("--deadline-ms", 500.0, 1, help="Deadline of every request, in milliseconds.")
@click.option(
    "--overload",
    is_flag=True,
    help="Compare refusing with rushing instead: `coldframe serve` at 3 times its capacity, labelled texts.",
)
@click.option("--peers", is_flag=True, help="Also beside other servers with their own batching, over HTTP.")
@click.option("--only", multiple=True, help="Folder in bench/peers, only with --peers; may be repeated.")
@ENVIRONMENTS
@recorded("serve.jsonl")
def serve(overload: bool, **options: Any) -> Table:
    """Passes shared across requests: the scheduler beside a fixed delay and beside none, open loop."""
    if overload:
        from coldframe_bench.benchmarks.serve import overload as refused_or_rushed
        from coldframe_bench.benchmarks.serve.mixes import ServeOptions

        refused_or_rushed.run(ServeOptions(**options))
        return refused_or_rushed.overload_table
    from coldframe_bench.benchmarks.serve.measure import run
    from coldframe_bench.benchmarks.serve.mixes import ServeOptions
    from coldframe_bench.benchmarks.serve.table import serve_table

    run(ServeOptions(**options))
    return serve_table


@click.command()
@number("--texts", 20_000, 64, help="How many are sent.")
@click.option("--file", type=FILE, help='Texts to send: {"text": "…"} per line; default: as `load`.')
@number("--seconds", 3.0, 0.05, help="Seconds of each measurement.")
@number(
    "--pass-tokens", (8192, 32_768, 131_072), 256, multiple=True, help="Tokens of a pass; may be repeated."
)
@number("--threads", (1, 2), 1, 64, multiple=True, help="Threads that send work to the GPU; may be repeated.")
@click.option(
    "--peer-python",
    type=FILE,
    help="Python of an environment with sentence-transformers and CUDA's torch; default: no peer.",
)
@click.option(
    "--http/--no-http", "with_http", default=True, help="Whether `coldframe serve` is measured, too."
)
@recorded("gpu.jsonl")
def gpu(**options: Any) -> Table:
    """The encoder on an NVIDIA GPU: both graphs, texts to embeddings, over HTTP, beside a peer."""
    from coldframe_bench.benchmarks.gpu.measure import GpuOptions, run
    from coldframe_bench.benchmarks.gpu.table import gpu_table

    run(GpuOptions(**options))
    return gpu_table


@click.command()
@click.argument("files", nargs=-1, type=FILE)
@out_option("report.html")
@click.option(
    "--docs",
    is_flag=True,
    help="Also write the tables of README.md and docs/benchmarks.md anew, and the durations that plans use.",
)
def report(files: tuple[Path, ...], out: Path, docs: bool) -> None:
    """Raw FILES to one page that needs nothing else; default: bench/results, else bench/published."""
    from coldframe_bench.reporting.report import PUBLISHED, fill, markdown, raw_files, read_all, write_page
    from coldframe_local.planner.scenarios import timings

    require_bench_libraries()
    results = read_all(files or raw_files(RESULTS) or raw_files(PUBLISHED))
    write_page(results, out)
    for document in (ROOT / "README.md", ROOT / "docs" / "benchmarks.md") if docs else ():
        document.write_text(fill(document.read_text(), markdown(results)))
    if docs and "cost" in results:
        timings.PUBLISHED.write_text(timings.read_bench_cost(results["cost"].path).json())
    click.echo(str(out))


COMMANDS = (cold, load, compare, encoder, cost, serve, gpu, report)
