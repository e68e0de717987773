"""How many invocations the simulator does in a second, beside the admission rules themselves and SimFaaS.

All sides take turns in one run, and each has one thread, so seconds are those of the processor: what else
the machine does counts less. Each round's arrivals are Poisson and its durations exponential, of the
same seed for those of ours.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import numpy as np

from coldframe_bench.records.tables import Row, table
from coldframe_bench.targets.environments import ENVIRONMENTS, PeersMissing, install, measure_peer
from coldframe_bench.targets.machine import Check
from coldframe_local.planner.simulator.numba_switch import HAS_NUMBA
from coldframe_local.planner.simulator.reference import simulate_by_rules
from coldframe_local.planner.simulator.simulator import Pool, Setup, Workload, simulate

CONCURRENCIES = (0.02, 1.0, 10.0, 100.0)
DURATION_S = 0.05
INIT_S = 1.0
# The slower a side is, the fewer invocations it gets; none for less than a tenth of a second.
_SHARES = {"numba": 1.0, "python": 0.2, "decide": 0.01, "SimFaaS": 0.01}
_ROUNDS = 5
_SETUP = Setup((Pool((INIT_S,)),))


def run(check: Check) -> None:
    """Prints the median of the rounds for each side, and what an invocation takes of memory."""
    sides: dict[str, Callable[[float, int, int], float]] = {
        "numba": partial(_ours, partial(simulate, engine="numba")),
        "python": partial(_ours, partial(simulate, engine="python")),
        "decide": partial(_ours, simulate_by_rules),
    }
    if HAS_NUMBA:
        sides["numba"](1.0, 10, check.seed)  # compiled, or read from disk
    else:
        click.echo("numba is not installed. Run in the checkout: pip install --editable '.[plan]'", err=True)
        del sides["numba"]
    try:
        sides["SimFaaS"] = partial(_simfaas, install(ENVIRONMENTS, "simfaas"))
    except PeersMissing as exc:
        click.echo(f"SimFaaS cannot be installed: {exc}", err=True)
    rows: list[Row] = []
    for concurrency in CONCURRENCIES:
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(_ROUNDS):
            for name, side in sides.items():
                rates[name].append(side(concurrency, int(check.samples * _SHARES[name]), check.seed + number))
        rows.append((f"{concurrency:g}", *(f"{statistics.median(rates[name]):,.0f}" for name in sides)))
    click.echo(table(("mean concurrency", *sides), rows))
    click.echo(
        f"Invocations in a second of processor time, medians of {_ROUNDS} rounds in turns; the fastest side"
        f" has {check.samples:,} a round. {bytes_per_invocation():.1f} bytes of memory per invocation,"
        " arrivals and durations included."
    )


def workload(concurrency: float, invocations: int, seed: int) -> Workload:
    """Poisson arrivals and exponential durations whose product is the mean concurrency."""
    source = np.random.default_rng(seed)
    arrivals_s = np.cumsum(source.exponential(DURATION_S / concurrency, invocations))
    return Workload(arrivals_s, source.exponential(DURATION_S, invocations).astype(np.float32))


def bytes_per_invocation(count: int = 200_000) -> float:
    """Memory that a run holds at its peak, its input included."""
    tracemalloc.start()
    try:
        work = workload(1.0, count, 0)
        tracemalloc.reset_peak()
        simulate(work, _SETUP)
        return tracemalloc.get_traced_memory()[1] / count
    finally:
        tracemalloc.stop()


def _ours(
    engine: Callable[[Workload, Setup], object], concurrency: float, invocations: int, seed: int
) -> float:
    work = workload(concurrency, invocations, seed)
    started = time.process_time()
    engine(work, _SETUP)
    return invocations / (time.process_time() - started)


def _simfaas(python: Path, concurrency: float, invocations: int, seed: int) -> float:
    return float(measure_peer(python, "simfaas", concurrency, DURATION_S, invocations, seed)[-1].split()[-1])
