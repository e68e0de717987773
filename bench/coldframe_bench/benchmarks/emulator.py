"""Cost of the emulator itself: HTTP server, Runtime API, trivial handler and back, beside a bare uvicorn.

A third side is the emulator without the freeze between invocations. All run in turns in one run, each as a
process of its own, asked by the same client. The client, the emulators and their environments share this
machine's cores, as they do when an emulator is used.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from statistics import median, quantiles

import click
import uvloop

from coldframe.capacity.admission import (
    Arrival,
    Finished,
    Initialized,
    KeepAliveCheck,
    Lease,
    Limits,
    State,
    decide,
)
from coldframe_bench.loader.http_client import HttpClient
from coldframe_bench.records.tables import Row, table
from coldframe_bench.targets.machine import Check
from coldframe_bench.targets.serving import ServerFailed, listening
from coldframe_local.paths import ROOT

_ENVIRONMENTS = 4
_ROUNDS = 3
_POOLS = (1, 50, 1000)
_HERE = ROOT / "bench" / "coldframe_bench" / "targets" / "trivial_function"
_EMULATOR = f"""
import sys
from pathlib import Path
from coldframe_local.emulator.front.emulator import run
from coldframe_local.emulator.options import EmulatorOptions, one_function
template = one_function("trivial.handler", Path({str(_HERE)!r}), memory_mb=512)
template = template.with_settings(freeze="thawed" not in sys.argv)
run(EmulatorOptions(template, port=0, max_environments={_ENVIRONMENTS}))
"""
_BARE = ["--port=0", "--http=httptools", "--loop=uvloop", "--ws=none", "--lifespan=off", "--no-access-log"]


@dataclass(frozen=True)
class Side:
    """One target's latencies, a request at a time, and its throughput over several connections."""

    latencies_ms: list[float]
    throughputs_rps: list[float]


def run(check: Check) -> None:
    """Prints latency and throughput of all sides, of as many requests in each measurement as samples."""
    requests = check.samples
    with (
        listening("-c", _EMULATOR) as emulator,
        listening("-c", _EMULATOR, "thawed") as thawed,
        listening("-m", "uvicorn", "coldframe_bench.targets.null_target:app", *_BARE) as null,
    ):
        sides = uvloop.run(_measure((emulator, thawed, null), requests))
    rows: list[Row] = []
    names = ("emulator, trivial handler", "the same, --no-freeze", "bare uvicorn")
    for name, side in zip(names, sides, strict=True):
        cuts_ms, throughput = quantiles(side.latencies_ms, n=100), median(side.throughputs_rps)
        rows.append((name, f"{cuts_ms[49]:.2f} ms", f"{cuts_ms[98]:.2f} ms", f"{throughput:,.0f} requests/s"))
    first, thawed_side, null_side = sides
    for name, other in (("ratio", null_side), ("freeze / no freeze", thawed_side)):
        slower = median(first.latencies_ms) / median(other.latencies_ms)
        pairs = zip(first.throughputs_rps, other.throughputs_rps, strict=True)
        rows.append((name, f"{slower:.2f}", "", f"{median(own / base for own, base in pairs):.3f}"))
    click.echo(table(f" | p50 | p99 | {_ENVIRONMENTS} connections", rows))
    click.echo(
        f"{requests:,} requests each, {_ROUNDS} rounds in turns, {os.cpu_count()} cores shared by all."
    )
    rules = ", ".join(f"{_rules_us(environments):.0f} µs with {environments:,}" for environments in _POOLS)
    click.echo(f"The admission rules' part of an invocation: {rules} environments.")


def _rules_us(environments: int, invocations: int = 2000) -> float:
    """Microseconds that the admission rules take for one invocation, with this number of environments."""
    limits = Limits(
        account_concurrency=environments, scaling_burst=environments, requests_per_environment_s=None
    )
    state = State(limits)
    for _ in range(environments):
        state, _ = decide(state, Arrival(), 0.0)
    for environment_id in range(environments):
        state, _ = decide(state, Initialized(environment_id), 0.0)
        state, _ = decide(state, Finished(environment_id), 0.0)
    started = time.perf_counter()
    for _ in range(invocations):
        state, _ = decide(state, KeepAliveCheck(), 0.0)
        state, leased = decide(state, Arrival(), 0.0)
        if isinstance(leased, Lease):
            state, _ = decide(state, Finished(leased.environment_id), 0.0)
    return (time.perf_counter() - started) / invocations * 1e6


async def _measure(addresses: tuple[str, str, str], requests: int) -> tuple[Side, Side, Side]:
    sides = Side([], []), Side([], []), Side([], [])
    for address in addresses:  # every environment is up, and every code path was taken
        await asyncio.gather(*(_repeat(address, 50) for _ in range(_ENVIRONMENTS)))
    for _ in range(_ROUNDS):
        for side, address in zip(sides, addresses, strict=True):
            side.latencies_ms.extend(await _repeat(address, requests // _ROUNDS))
            started = time.perf_counter()
            each = requests // _ROUNDS // _ENVIRONMENTS
            await asyncio.gather(*(_repeat(address, each) for _ in range(_ENVIRONMENTS)))
            side.throughputs_rps.append(each * _ENVIRONMENTS / (time.perf_counter() - started))
    return sides


async def _repeat(address: str, requests: int) -> list[float]:
    """Milliseconds of each request, one after the other on one connection.

    Raises ServerFailed for a status other than 200.
    """
    client = HttpClient(address)
    times_ms = []
    for _ in range(requests):
        started = time.perf_counter()
        status, _ = await client.post(b"{}")
        times_ms.append((time.perf_counter() - started) * 1e3)
        if status != 200:
            raise ServerFailed(f"{address} answered {status}, expected 200. Run it alone to see why.")
    client.close()
    return times_ms
