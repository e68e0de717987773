"""The simulator against the emulator, on a recorded run of real processes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from coldframe.capacity.admission import Limits, Throttle
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.planner.scenarios.bill import usage
from coldframe_local.planner.scenarios.prices import MONTH_S, load_prices
from coldframe_local.planner.simulator import kernel
from coldframe_local.planner.simulator.simulator import Engine, Function, Pool, Run, Setup, Workload, simulate
from coldframe_local.planner.simulator.summary import summarize
from tests.support.emulation import function, running_pids, until

pytestmark = [pytest.mark.waits, pytest.mark.anyio]

KEEP_ALIVE_S, RESERVED, PROVISIONED, MEMORY_MB = 600.0, 4, 2, 512
# Seconds that pass before each round, and how many invocations come at once.
ROUNDS = ((1.0, 1), (1.0, 2), (1.0, 4), (1.0, 6), (599.0, 3), (700.0, 4), (30.0, 4))


class ShiftedClock:
    """Real seconds since its start, and those that a test adds."""

    def __init__(self) -> None:
        self.shift_s, self._start_s = 0.0, time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._start_s + self.shift_s


@dataclass(frozen=True)
class Recorded:
    """One invocation of the emulator, from its arrival to its answer."""

    arrival_s: float
    total_s: float
    result: Invoked | Throttle


def are_running(gate: Path, count: int) -> bool:
    return len(running_pids(gate)) == count


async def record(service: LambdaService, clock: ShiftedClock, gate: Path) -> list[Recorded]:
    """Rounds of invocations that are all under way before the first of them may end."""

    async def one() -> Recorded:
        arrival_s = clock()
        result = await service.invoke("f", "live", b"{}")
        return Recorded(arrival_s, clock() - arrival_s, result)

    recorded: list[Recorded] = []
    for pause_s, count in ROUNDS:
        clock.shift_s += pause_s
        for file in gate.iterdir():
            file.unlink()
        admitted = partial(are_running, gate, min(count, RESERVED))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one()) for _ in range(count)]
            await until(admitted)
            (gate / "open").touch()
        recorded += [task.result() for task in tasks]
        await until(lambda: service.snapshot().functions[0].concurrent_executions == 0)
    return recorded


def replayed(recorded: list[Recorded], engine: Engine) -> tuple[Run, Workload, Setup]:
    """The same arrivals and durations in virtual time; each environment starts as slowly as it did."""
    durations_s = [
        0.0 if isinstance(one.result, Throttle) else one.result.duration_ms / 1e3 for one in recorded
    ]
    inits_s = [0.0] * 32
    for one, duration_s in zip(recorded, durations_s, strict=True):
        if isinstance(one.result, Invoked) and one.result.cold and one.result.environment_id is not None:
            inits_s[one.result.environment_id] = one.total_s - duration_s
    setup = Setup(
        (Pool(inits_s, provisioned=PROVISIONED),),
        (Function((KEEP_ALIVE_S,), reserved=RESERVED),),
        Limits(keep_alive_s=KEEP_ALIVE_S),
    )
    arrivals_s = np.array([one.arrival_s for one in recorded])
    workload = Workload(arrivals_s, np.array(durations_s, np.float32))
    return simulate(workload, setup, engine), workload, setup


def outcome(result: Invoked | Throttle) -> int:
    """What the kernel would write."""
    if isinstance(result, Throttle):
        return kernel.RESERVED_CONCURRENCY
    bits = ((result.cold, kernel.COLD), (result.provisioned, kernel.ON_PROVISIONED))
    return sum(bit for holds, bit in (*bits, (result.spillover, kernel.SPILLOVER)) if holds)


async def test_simulator_tells_what_the_emulator_did(lines: list[str], tmp_path: Path) -> None:
    """Cold starts, throttles and spillover one by one; p99 and USD within 5 %."""
    clock = ShiftedClock()
    async with LambdaService(lines.append, keep_alive_s=KEEP_ALIVE_S, init_cores=16, clock=clock) as service:
        settings = function("handlers.gate", environ={"GATE": str(tmp_path)}, memory_mb=MEMORY_MB)
        service.create_function(settings)
        service.functions.put_alias("f", "live", service.functions.publish("f"))
        service.concurrency.put_reserved("f", RESERVED)
        service.concurrency.put_provisioned("f", "live", PROVISIONED)
        await until(lambda: service.concurrency.get_provisioned("f", "live").status == "READY")
        recorded = await record(service, clock, tmp_path)
        view, span_s = service.snapshot().functions[0], clock()
    expected = [outcome(one.result) for one in recorded]
    assert {kernel.COLD | kernel.SPILLOVER, kernel.SPILLOVER, kernel.RESERVED_CONCURRENCY} <= set(expected)
    engines: tuple[Engine, ...] = ("python", "numba")
    for engine in engines:
        run, workload, setup = replayed(recorded, engine)
        assert run.outcomes.tolist() == expected
        totals_ms = [one.total_s * 1e3 for one in recorded if isinstance(one.result, Invoked)]
        p99_ms = np.percentile(totals_ms, 99, method="inverted_cdf")
        assert summarize(run, workload).p99_ms == pytest.approx(p99_ms, rel=0.05)
        used = usage(run, workload, setup, MEMORY_MB, span_s)
        month_usd = used.month_usd(load_prices().regions["us-east-1"], settings.architecture)
        assert month_usd * span_s / MONTH_S == pytest.approx(view.cost_usd, rel=0.05)
