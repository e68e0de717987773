"""How many invocations the simulator does in a second, beside the admission rules themselves and SimFaaS.

All sides take turns in one run, and each has one thread, so seconds are those of the processor: what else
the machine does counts less. Each round's arrivals are Poisson and its durations exponential, of the
same seed for those of ours.
"""

from __future__ import annotations

import statistics
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

from bench.targets.environments import ENVIRONMENTS, PEERS, install
from local.planner.simulator.numba_switch import HAS_NUMBA
from local.planner.simulator.reference import simulate_by_rules
from local.planner.simulator.simulator import Engine, Pool, Setup, Workload, simulate

CONCURRENCIES = (0.02, 1.0, 10.0, 100.0)
DURATION_S = 0.05
INIT_S = 1.0
# The slower a side is, the fewer invocations it gets; none for less than a tenth of a second.
_SHARES = {"numba": 1.0, "python": 0.2, "decide": 0.01, "SimFaaS": 0.01}
_SETUP = Setup((Pool((INIT_S,)),))


def run(invocations: int, rounds: int, seed: int, environments: Path = ENVIRONMENTS) -> None:
    """Prints the median of the rounds for each side, and what an invocation takes of memory."""
    sides: dict[str, Callable[[float, int, int], float]] = {
        "numba": lambda *work: _ours("numba", *work),
        "python": lambda *work: _ours("python", *work),
        "decide": _by_rules,
    }
    if not HAS_NUMBA:
        click.echo("numba is not installed. Run in the checkout: pip install --editable '.[plan]'", err=True)
        del sides["numba"]
    reason = install(environments / "simfaas", "simfaas", needs_torch=False)
    if reason:
        click.echo(f"SimFaaS cannot be installed: {reason}", err=True)
    else:
        sides["SimFaaS"] = lambda *work: _simfaas(environments / "simfaas", *work)
    if "numba" in sides:
        _ours("numba", 1.0, 10, seed)  # compiled, or read from disk
    click.echo(f"{'mean concurrency':>18}" + "".join(f"{name:>14}" for name in sides))
    for concurrency in CONCURRENCIES:
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(rounds):
            for name, side in sides.items():
                rates[name].append(side(concurrency, int(invocations * _SHARES[name]), seed + number))
        medians = {name: statistics.median(of_side) for name, of_side in rates.items()}
        click.echo(f"{concurrency:18g}" + "".join(f"{medians[name]:14,.0f}" for name in sides))
    click.echo(
        f"Invocations in a second of processor time, medians of {rounds} rounds in turns; the fastest side"
        f" has {invocations:,} a round."
    )
    click.echo(
        f"{bytes_per_invocation():.1f} bytes of memory per invocation, arrivals and durations included."
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


def _ours(engine: Engine, concurrency: float, invocations: int, seed: int) -> float:
    work = workload(concurrency, invocations, seed)
    started = time.process_time()
    simulate(work, _SETUP, engine)
    return invocations / (time.process_time() - started)


def _by_rules(concurrency: float, invocations: int, seed: int) -> float:
    work = workload(concurrency, invocations, seed)
    started = time.process_time()
    simulate_by_rules(work, _SETUP)
    return invocations / (time.process_time() - started)


def _simfaas(environment: Path, concurrency: float, invocations: int, seed: int) -> float:
    done = subprocess.run(
        [
            str(environment / "bin" / "python"),
            str(PEERS / "simfaas" / "measure.py"),
            *map(str, (concurrency, DURATION_S, invocations, seed)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])
