"""Many requests against the emulator, while its environments are killed, and for long."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter
from pathlib import Path

import pytest

from coldframe_bench.loader.http_client import HttpClient
from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.lambda_service.environments.memory import MemoryMeter
from coldframe_local.emulator.options import EmulatorOptions, one_function
from tests.support.emulation import HERE, PATIENCE_S, is_alive, until

pytestmark = [pytest.mark.waits, pytest.mark.anyio]

REQUESTS, CLIENTS, KILLS, MANY = 1000, 8, 40, 20_000


async def ask(port: int, requests: int, statuses: Counter[int]) -> None:
    """So many requests in a row."""
    client = HttpClient(f"http://127.0.0.1:{port}/")
    for _ in range(requests):
        status, _ = await client.post(b"{}")
        statuses[status] += 1
    client.close()


async def test_every_request_is_answered_while_environments_are_killed() -> None:
    """kill -9 on 40 environments in 1,000 requests: 502 for at most as many, 200 for all others."""
    lines: list[str] = []
    settings = EmulatorOptions(
        one_function("handlers.nothing", HERE, memory_mb=512, provisioned_concurrency=2),
        port=0,
        max_environments=CLIENTS + 2,  # two are set aside for provisioned ones, up or not
        log=lines.append,
    )
    statuses: Counter[int] = Counter()
    killed: list[int] = []
    choose = random.Random(4)
    async with Emulator(settings) as emulator, asyncio.timeout(2 * PATIENCE_S):
        service, port = emulator.service, int(emulator.url.rsplit(":", 1)[1])

        async def kill() -> None:
            """One environment for every 25 answers, whatever it is doing."""
            while len(killed) < KILLS:
                await until(lambda: statuses.total() >= len(killed) * REQUESTS // KILLS)
                pids = [
                    view.pid for view in service.snapshot().environments if view.pid not in (None, *killed)
                ]
                if pids:
                    killed.append(choose.choice([pid for pid in pids if pid is not None]))
                    os.kill(killed[-1], signal.SIGKILL)
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            group.create_task(kill())
            for _ in range(CLIENTS):
                group.create_task(ask(port, REQUESTS // CLIENTS, statuses))
        counted = service.snapshot().functions[0]
        while service.concurrency.get_provisioned("coldframe-predict", "live").status != "READY":
            await ask(port, 1, Counter())
        survivors = [view.pid for view in service.snapshot().environments]
    assert statuses.total() == REQUESTS
    assert set(statuses) <= {200, 502}
    assert 0 < statuses[502] <= KILLS
    assert (counted.invocations, counted.errors, counted.concurrent_executions) == (
        REQUESTS,
        statuses[502],
        0,
    )
    assert not any(is_alive(pid) for pid in [*killed, *survivors] if pid is not None)


SERVE = """
from pathlib import Path
from coldframe_local.emulator.front.emulator import run
from coldframe_local.emulator.options import EmulatorOptions, one_function
run(EmulatorOptions(one_function("handlers.nothing", Path({root!r})), port=0, max_environments=4))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
async def test_memory_does_not_grow_with_requests() -> None:
    """After 20,000 requests the emulator holds no more than a tenth more than after 2,000."""
    code = SERVE.format(root=str(HERE))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=PIPE, stdin=DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    meter = MemoryMeter(process.pid)
    assert process.stdout is not None
    try:
        port = int((await process.stdout.readline()).decode().rsplit(":", 1)[1])
        log = asyncio.create_task(process.stdout.read())
        held_mb = []
        for requests in (MANY // 10, MANY - MANY // 10):
            statuses: Counter[int] = Counter()
            await asyncio.gather(*(ask(port, requests // 4, statuses) for _ in range(4)))
            assert statuses == {200: requests}
            held_mb.append(meter.resident_mb() or 0)
        process.send_signal(signal.SIGTERM)
        assert b"20000 invocations" in await log
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        meter.close()
    assert held_mb[0] > 0
    assert held_mb[1] <= held_mb[0] * 1.1, held_mb
