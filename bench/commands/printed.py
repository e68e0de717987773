"""Commands that print what they measured, and keep nothing."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import click

from bench.commands.options import SEED, require_bench_libraries
from local.commands.outputs import require
from local.paths import model_dir

BATCH, REQUEST, SERVER = "batch", "request", "server"
DUCKDB, SPARK = "duckdb", "spark"
_SIMULATOR_ROUNDS = 5


@click.command()
@click.argument("where", type=click.Choice([BATCH, REQUEST, SERVER]), default=REQUEST)
@click.option(
    "--requests",
    default=20,
    show_default=True,
    type=click.IntRange(4, 10_000),
    help="Requests of each mix of texts; not for `server`.",
)
@click.option("--budget", type=click.IntRange(1), help="Tokens of a pass, for `batch`; default: measured.")
@click.option(
    "--seconds",
    default=3.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Seconds in each turn of `server`.",
)
@click.option(
    "--turns", default=5, show_default=True, type=click.IntRange(1, 100), help="Turns of each server."
)
@SEED
def passes(where: str, requests: int, budget: int | None, seconds: float, turns: int, seed: int) -> None:
    """Processors, threads and rows of a pass, in one run: in a batch, in a request, or in a server.

    `batch` compares one text at a time, fixed sizes and the budgeted plan. `request` compares threads
    of each pass with passes at once. `server` compares the same two over HTTP.
    """
    if where == BATCH:
        from bench.benchmarks.batching import run as run_batches

        run_batches(model_dir(), requests, budget, seed)
    elif where == REQUEST:
        from bench.benchmarks.passes import run as run_requests

        run_requests(model_dir(), requests, seed)
    else:
        from bench.benchmarks.workers import run as run_servers

        run_servers(model_dir(), seconds, turns, seed)


@click.command()
@click.argument("engine", type=click.Choice([DUCKDB, SPARK]), default=DUCKDB)
@click.option("--rows", type=click.IntRange(10), help="Rows; default: 2000, with Spark 200,000.")
@click.option(
    "--labels", default=5, show_default=True, type=click.IntRange(1), help="Labels to find, in DuckDB."
)
@click.option(
    "--cores", default=2, show_default=True, type=click.IntRange(1), help="Cores for Spark on this machine."
)
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Turns, with Spark.")
@SEED
def tables(engine: str, rows: int | None, labels: int, cores: int, rounds: int, seed: int) -> None:
    """Functions in DuckDB, or `coldframe.spark`, beside a plain function row by row."""
    if engine == SPARK:
        from bench.benchmarks.spark import run as run_spark

        run_spark(model_dir(), rows or 200_000, cores, rounds, seed)
        return
    require("duckdb", "duckdb")
    from bench.benchmarks.sql import run as run_duckdb

    if not run_duckdb(model_dir(), rows or 2000, labels, seed):
        raise click.ClickException("The ways found different rows.")


@dataclass(frozen=True)
class Size:
    """Defaults of one check: the image it starts, its samples, and the fewest samples."""

    image: str
    samples: int
    least: int


@dataclass(frozen=True)
class Check:
    """One run of a check."""

    image: str
    samples: int
    seed: int


def _memory(check: Check) -> None:
    from bench.benchmarks.memory import run

    run(model_dir(), check.samples)


def _emulator(check: Check) -> None:
    from bench.benchmarks.emulator import run

    run(check.samples)


def _simulator(check: Check) -> None:
    from bench.benchmarks.simulate import run

    run(check.samples, _SIMULATOR_ROUNDS, check.seed)


def _image(check: Check) -> None:
    from bench.benchmarks.image import run

    run(check.image, check.samples)


def _gpu_image(check: Check) -> None:
    from bench.benchmarks.gpu_image import run

    run(check.image)


def _from_zero(check: Check) -> None:
    from bench.benchmarks.from_zero import run

    run(check.image, check.samples)


def _cache_faults(check: Check) -> None:
    if find_spec("moto") is None:
        raise click.ClickException(
            "moto is not installed. Run `make test`, or install tests/requirements.txt."
        )
    from bench.benchmarks.cache_faults import run

    run(model_dir(), check.samples, check.seed)


def _road(check: Check) -> None:
    from bench.benchmarks.road import over_budget, road_table, run
    from bench.records.budgets import load_budgets

    require_bench_libraries()
    roads, budgets = run(model_dir()), load_budgets().road
    click.echo(road_table(roads, budgets), nl=False)
    exceeded = over_budget(roads, budgets)
    for line in exceeded:
        click.echo(f"Over budget: {line}", err=True)
    if exceeded:
        sys.exit(1)


CHECKS: dict[str, tuple[Callable[[Check], None], Size]] = {
    "road": (_road, Size("", 1, 1)),
    "memory": (_memory, Size("", 15, 3)),
    "cache-faults": (_cache_faults, Size("", 40, 10)),
    "emulator": (_emulator, Size("", 12_000, 120)),
    "simulator": (_simulator, Size("", 2_000_000, 1000)),
    "image": (_image, Size("coldframe", 5, 1)),
    "gpu-image": (_gpu_image, Size("coldframe:gpu", 1, 1)),
    "from-zero": (_from_zero, Size("coldframe:server", 5, 1)),
}


@click.command()
@click.argument("part", type=click.Choice(list(CHECKS)))
@click.option("--image", help="Image of the last three; default: coldframe, coldframe:gpu, coldframe:server.")
@click.option(
    "--samples", type=click.IntRange(1), help="Number of processes, containers, requests or invocations."
)
@SEED
def check(part: str, image: str | None, samples: int | None, seed: int) -> None:
    """One PART of Coldframe: its size, memory, code, or behaviour when something fails.

    \b
    road          files, functions, lines and depth of the code that one request runs through
    memory        the session's milliseconds, and peak memory after requests of every size
    cache-faults  a shared table that fails, beside no table
    emulator      latency and throughput of the emulator, beside a bare uvicorn
    simulator     invocations per second of the planner's simulator, beside SimFaaS
    image         size of the function's image, what a cold start reads, and how long one takes
    gpu-image     size of the image for a GPU
    from-zero     the server's container from its start to its first answer
    """
    run, size = CHECKS[part]
    if samples is not None and samples < size.least:
        raise click.BadParameter(
            f"{samples} is too few for {part}: expected at least {size.least}. Raise --samples.",
            param_hint="--samples",
        )
    run(Check(image or size.image, samples or size.samples, seed))


COMMANDS = (passes, tables, check)
