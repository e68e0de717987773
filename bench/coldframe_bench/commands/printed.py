"""Commands that print what they measured, and keep nothing."""

from pkgutil import resolve_name
from typing import NamedTuple

import click

from coldframe_bench.commands.options import SEED, number, require_bench_libraries
from coldframe_local.commands.outputs import require
from coldframe_local.paths import model_dir

BATCH, REQUEST, SERVER = "batch", "request", "server"
DUCKDB, SPARK = "duckdb", "spark"


@click.command()
@click.argument("where", type=click.Choice([BATCH, REQUEST, SERVER]), default=REQUEST)
@number("--requests", 20, 4, 10_000, help="Requests of each mix of texts; not for `server`.")
@number("--budget", None, 1, help="Tokens of a pass, for `batch`; default: measured.")
@number("--seconds", 3.0, 0.1, help="Seconds in each turn of `server`.")
@number("--turns", 5, 1, 100, help="Turns of each server.")
@SEED
def passes(where: str, requests: int, budget: int | None, seconds: float, turns: int, seed: int) -> None:
    """Processors, threads and rows of a pass, in one run: in a batch, in a request, or in a server.

    `batch` compares one text at a time, fixed sizes and the budgeted plan. `request` compares threads
    of each pass with passes at once. `server` compares the same two over HTTP.
    """
    require_bench_libraries()
    from coldframe_bench.benchmarks.passes import in_batches, in_requests, in_servers

    if where == BATCH:
        in_batches(model_dir(), requests, budget, seed)
    elif where == REQUEST:
        in_requests(model_dir(), requests, seed)
    else:
        in_servers(model_dir(), seconds, turns, seed)


@click.command()
@click.argument("engine", type=click.Choice([DUCKDB, SPARK]), default=DUCKDB)
@number("--rows", None, 10, help="Rows; default: 2000, with Spark 200,000.")
@number("--labels", 5, 1, help="Labels to find, in DuckDB.")
@number("--cores", 2, 1, help="Cores for Spark on this machine.")
@number("--rounds", 3, 1, help="Turns, with Spark.")
@SEED
def tables(engine: str, rows: int | None, labels: int, cores: int, rounds: int, seed: int) -> None:
    """Functions in DuckDB, or `coldframe.spark`, beside a plain function row by row."""
    require_bench_libraries()
    if engine == SPARK:
        from coldframe_bench.benchmarks.spark import run as run_spark

        run_spark(model_dir(), rows or 200_000, cores, rounds, seed)
        return
    require("duckdb", "duckdb")
    from coldframe_bench.benchmarks.sql import run as run_duckdb

    if not run_duckdb(model_dir(), rows or 2000, labels, seed):
        raise click.ClickException("The ways found different rows.")


class Size(NamedTuple):
    """Defaults of one check: its function, its samples, the fewest samples, and the image it starts."""

    run: str
    samples: int
    least: int
    image: str = ""


CHECKS = {
    "road": Size("road:run", 1, 1),
    "memory": Size("memory:run", 15, 3),
    "cache-faults": Size("cache_faults:run", 40, 10),
    "emulator": Size("emulator:run", 12_000, 120),
    "experiments": Size("experiments:run", 400, 20),
    "simulator": Size("simulate:run", 2_000_000, 1000),
    "image": Size("image:run", 5, 1, "coldframe"),
    "gpu-image": Size("image:run_gpu", 1, 1, "coldframe:gpu"),
    "from-zero": Size("from_zero:run", 5, 1, "coldframe:server"),
}


@click.command()
@click.argument("part", type=click.Choice(list(CHECKS)))
@click.option("--image", help="Image of the last three; default: coldframe, coldframe:gpu, coldframe:server.")
@number("--samples", None, 1, help="Processes, containers, requests or invocations; default: by PART.")
@SEED
def check(part: str, image: str | None, samples: int | None, seed: int) -> None:
    """One PART of Coldframe: its size, memory, code, or behaviour when something fails.

    \b
    road          files, functions, lines and depth of the code that one request runs through
    memory        the session's milliseconds, and peak memory after requests of every size
    cache-faults  a shared table that fails, beside no table
    emulator      latency and throughput of the emulator, beside a bare uvicorn
    experiments   an answer with a shadow beside an answer without, in pairs
    simulator     invocations per second of the planner's simulator, beside SimFaaS
    image         size of the function's image, what a cold start reads, and how long one takes
    gpu-image     size of the image for a GPU
    from-zero     the server's container from its start to its first answer
    """
    size = CHECKS[part]
    if samples is not None and samples < size.least:
        raise click.BadParameter(
            f"{samples} is too few for {part}: expected at least {size.least}. Raise --samples.",
            param_hint="--samples",
        )
    require_bench_libraries()
    from coldframe_bench.targets.machine import Check

    run = resolve_name(f"coldframe_bench.benchmarks.{size.run}")
    run(Check(model_dir(), image or size.image, samples or size.samples, seed))


COMMANDS = (passes, tables, check)
