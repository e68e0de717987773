"""What the emulator's tests share: real environments, conditions to wait for, processes to look at."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coldframe.capacity.admission import Throttle
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.settings import FunctionSettings

HERE = Path(__file__).resolve().parent
PATIENCE_S = 60.0  # for a busy machine; a condition that holds ends the wait at once


class FakeClock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


async def until(condition: Callable[[], bool]) -> None:
    """Returns once the condition holds; fails when it never does."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process still runs. One that only waits to be reaped by somebody does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return not re.search(r"^State:\s+[ZX]", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except FileNotFoundError:
        return not Path("/proc/self").exists()


def running_pids(gate: Path) -> list[int]:
    """Environments that have entered the gate handler."""
    return [int(path.name.removeprefix("running-")) for path in gate.glob("running-*")]


def reports(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("REPORT ")]


def function(handler: str = "handlers.echo", **changes: Any) -> FunctionSettings:
    settings: dict[str, Any] = {"task_root": HERE, "memory_mb": 512, "timeout_s": 29.0, "name": "f"}
    settings |= changes
    environ = {"PATH": os.environ["PATH"], **settings.pop("environ", {})}
    return FunctionSettings(handler=handler, environ=environ, **settings)


async def invoke(service: LambdaService, event: Any = None, qualifier: str | None = "live") -> Invoked:
    """An invocation that is admitted."""
    result = await service.invoke("f", qualifier, json.dumps(event or {}).encode())
    assert not isinstance(result, Throttle), result
    return result


def answer(invoked: Invoked) -> Any:
    """What the function returned."""
    assert invoked.outcome.status == "success", invoked.outcome
    return json.loads(invoked.outcome.payload)
