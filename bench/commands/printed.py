"""Commands that print what they measured, and keep nothing."""

import sys
from importlib.util import find_spec

import click

from bench.commands.options import SEED, require_bench_libraries
from local.commands.outputs import require
from local.paths import model_dir


@click.command("emulator")
@click.option(
    "--requests",
    default=12_000,
    show_default=True,
    type=click.IntRange(120),
    help="Requests in each measurement.",
)
def emulator(requests: int) -> None:
    """The emulator's own latency and throughput, beside a bare uvicorn."""
    from bench.benchmarks.emulator import run

    run(requests)


@click.command()
@click.argument("image", default="coldframe")
@click.option(
    "--samples", default=5, show_default=True, type=click.IntRange(1, 1000), help="Fresh containers."
)
@click.option(
    "--gpu", is_flag=True, help="IMAGE is `coldframe:gpu`, or like it: what it weighs, and no more."
)
def image(image: str, samples: int, gpu: bool) -> None:
    """The container IMAGE: its size, what a cold start reads, and how long one takes."""
    if gpu:
        from bench.benchmarks.gpu_image import run as weigh

        weigh("coldframe:gpu" if image == "coldframe" else image)
        return
    from bench.benchmarks.image import run

    run(image, samples)


@click.command("from-zero")
@click.argument("image", default="coldframe:server")
@click.option(
    "--samples", default=5, show_default=True, type=click.IntRange(1, 1000), help="Fresh containers."
)
@click.option("--cpu", default=1.0, show_default=True, type=click.FloatRange(0.25))
@click.option("--memory-mb", default=1024, show_default=True, type=click.IntRange(256))
def from_zero(image: str, samples: int, cpu: float, memory_mb: int) -> None:
    """The server's IMAGE as Knative runs it: from no container to the first answer, and its memory."""
    from bench.benchmarks.from_zero import run
    from local.deploy.homes.facts import ALLOW_ANYONE, Choices, Replicas, Size

    anyone = {ALLOW_ANYONE: "true"}
    run(Choices("server", image, Size(cpu, memory_mb), Replicas(0, 1), anyone), samples)


@click.command()
@click.option(
    "--seconds", default=3.0, show_default=True, type=click.FloatRange(0.1), help="Seconds for each size."
)
def cpu(seconds: float) -> None:
    """How well `up --cpu-from-memory` keeps its promise."""
    from bench.benchmarks.cpu_share import run

    run(seconds)


@click.command()
@click.option(
    "--requests",
    default=20,
    show_default=True,
    type=click.IntRange(4, 10_000),
    help="Requests of each mix of texts.",
)
@click.option("--budget", type=click.IntRange(1), help="Tokens of a pass; default: measured here.")
@SEED
def batching(requests: int, budget: int | None, seed: int) -> None:
    """Batching inside a request: one text at a time, fixed sizes and the budgeted plan, in one run."""
    from bench.benchmarks.batching import run

    run(model_dir(), requests, budget, seed)


@click.command()
@click.option(
    "--requests",
    default=20,
    show_default=True,
    type=click.IntRange(4, 10_000),
    help="Requests of each mix of texts.",
)
@SEED
def passes(requests: int, seed: int) -> None:
    """A request's processors: threads of each pass, or passes at once, beside one processor, in one run."""
    from bench.benchmarks.passes import run

    run(model_dir(), requests, seed)


@click.command()
@click.option(
    "--seconds", default=3.0, show_default=True, type=click.FloatRange(0.1), help="Seconds in each turn."
)
@click.option(
    "--turns", default=5, show_default=True, type=click.IntRange(1, 100), help="Turns of each shape."
)
@SEED
def workers(seconds: float, turns: int, seed: int) -> None:
    """The server's processors: passes at once against threads of one pass, over HTTP, in one run."""
    from bench.benchmarks.workers import run

    run(model_dir(), seconds, turns, seed)


@click.command()
@click.option(
    "--samples", default=15, show_default=True, type=click.IntRange(3, 1000), help="Fresh processes."
)
def memory(samples: int) -> None:
    """A served environment: milliseconds of its session, peak memory after requests of every size."""
    from bench.benchmarks.memory import run

    run(model_dir(), samples)


@click.command()
def road() -> None:
    """Files, functions, lines and depth of the code that one request runs through, by kind of request."""
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


@click.command("cache-faults")
@click.option(
    "--requests", default=40, show_default=True, type=click.IntRange(10, 10_000), help="For each fault."
)
@SEED
def cache_faults(requests: int, seed: int) -> None:
    """The shared table down, slow, throttling, wrong or stale, beside no table at all, in one run."""
    if find_spec("moto") is None:
        raise click.ClickException(
            "moto is not installed. Run `make test`, or install tests/requirements.txt."
        )
    from bench.benchmarks.cache_faults import run

    run(model_dir(), requests, seed)


@click.command()
@click.option(
    "--invocations",
    default=2_000_000,
    show_default=True,
    type=click.IntRange(1000),
    help="Invocations in a round of the fastest side; slower sides get a share.",
)
@click.option(
    "--rounds",
    default=5,
    show_default=True,
    type=click.IntRange(1, 100),
    help="Rounds in which the sides take turns.",
)
@SEED
def simulate(invocations: int, rounds: int, seed: int) -> None:
    """The simulator's invocations a second, beside the admission rules and SimFaaS, in one run."""
    from bench.benchmarks.simulate import run

    run(invocations, rounds, seed)


@click.command()
@click.option("--rows", default=2000, show_default=True, type=click.IntRange(10), help="Rows of the table.")
@click.option(
    "--labels", default=5, show_default=True, type=click.IntRange(1), help="Labels that are asked for."
)
@SEED
def sql(rows: int, labels: int, seed: int) -> None:
    """Functions in DuckDB: a plain one row by row, `topic`, and `is_topic` with early rejection."""
    require("duckdb", "duckdb")
    from bench.benchmarks.sql import run

    if not run(model_dir(), rows, labels, seed):
        raise click.ClickException("The ways found different rows.")


@click.command()
@click.option("--rows", default=200_000, show_default=True, type=click.IntRange(100), help="Sentences.")
@click.option(
    "--cores", default=2, show_default=True, type=click.IntRange(1), help="Cores for Spark on this machine."
)
@click.option(
    "--rounds",
    default=3,
    show_default=True,
    type=click.IntRange(1),
    help="Rounds in which the sides take turns.",
)
@SEED
def spark(rows: int, cores: int, rounds: int, seed: int) -> None:
    """`coldframe.spark` beside a naive map of the same model, row by row, on sentences with repeats."""
    from bench.benchmarks.spark import run

    run(model_dir(), rows, cores, rounds, seed)


COMMANDS = (
    emulator,
    image,
    from_zero,
    cpu,
    batching,
    passes,
    workers,
    memory,
    road,
    cache_faults,
    simulate,
    sql,
    spark,
)
