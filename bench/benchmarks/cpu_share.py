"""How well CPU in proportion to memory is kept: a busy loop under the emulator's limit, and without it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import click

from local.emulator.lambda_service.environments.cpu import CpuLimit, vcpus

_MEMORY_MB = (128, 256, 512, 1024)
_BUSY = "while True: pass"


def run(seconds: float) -> None:
    """Prints wanted and got CPUs for some memory sizes, after what this machine gives without a limit."""
    click.echo(f"{'memory':>10}{'wanted':>10}{'got':>10}{'got / wanted':>15}{'cost to the emulator':>23}")
    free, _ = asyncio.run(_measure(None, seconds))
    click.echo(f"{'no limit':>10}{'':>10}{free:10.3f}")
    for memory_mb in _MEMORY_MB:
        wanted = vcpus(memory_mb)
        got, cost = asyncio.run(_measure(wanted, seconds))
        click.echo(f"{memory_mb:7} MB{wanted:10.3f}{got:10.3f}{got / wanted:15.2f}{cost:19.3f} CPU")


async def _measure(limit: float | None, seconds: float) -> tuple[float, float]:
    """CPUs that a busy process got, and that keeping the limit took."""
    process = subprocess.Popen([sys.executable, "-c", _BUSY], start_new_session=True)
    try:
        clock_id = (~process.pid << 3) | 2
        cpu_limit = None if limit is None else CpuLimit(process.pid, limit)
        before = time.clock_gettime(clock_id), time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        after = time.clock_gettime(clock_id), time.process_time(), time.monotonic()
        if cpu_limit is not None:
            cpu_limit.lift()
    finally:
        process.kill()
        process.wait()
    used_s, own_s, elapsed_s = (late - early for late, early in zip(after, before, strict=True))
    return used_s / elapsed_s, own_s / elapsed_s
