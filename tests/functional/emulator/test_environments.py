"""What an execution environment is to its function, and what becomes of it when this machine fails."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.environments import runtime_process
from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.settings import LogFormat, LoggingConfig
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log
from tests.support.emulation import (
    HERE,
    PATIENCE_S,
    answer,
    function,
    invoke,
    reports,
    running_pids,
    until,
)

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serving(log: Log, init_cores: int | None = None, **changes: Any) -> AsyncIterator[LambdaService]:
    """A service with the function `f`, which does what it is told."""
    async with LambdaService(log, init_cores=init_cores) as service:
        service.create_function(function(**{"handler": "lambda_handlers.told", **changes}))
        yield service


async def told(service: LambdaService, do: str) -> Invoked:
    return await invoke(service, {"do": do}, qualifier=None)


def in_flight(service: LambdaService) -> int:
    return service.snapshot().functions[0].concurrent_executions


# Temporary files.


async def test_temporary_files_are_the_environment_s_own(lines: list[str], tmp_path: Path) -> None:
    """They stay for the next invocation, other environments do not see them, and they go with theirs."""
    async with serving(lines.append, environ={"GATE": str(tmp_path)}) as service:
        first = answer(await told(service, "write"))
        async with asyncio.TaskGroup() as group:
            group.create_task(told(service, "gate"))
            await until(lambda: len(running_pids(tmp_path)) == 1)
            other = answer(await told(service, "write"))
            (tmp_path / "open").touch()
        everything = answer(await told(service, "write")) + answer(await told(service, "write"))
        assert all(Path(path).exists() for path in (*first, *other))
    assert (len(first), len(other)) == (1, 1)
    assert first != other
    assert not {*first} >= {*other}
    assert not any(Path(path).exists() for path in everything)
    assert not any(Path(path).parent.exists() for path in everything)


# Logs.


async def test_init_phase_is_announced(lines: list[str]) -> None:
    """INIT_START comes first, once for an environment."""
    async with serving(lines.append, runtime="python3.13") as service:
        await told(service, "echo")
        await told(service, "echo")
    kinds = [line.split(" ")[0] for line in lines if not line.startswith("f has the runtime")]
    assert kinds == ["INIT_START", "START", "END", "REPORT", "START", "END", "REPORT"]


async def test_json_log_is_json_in_every_line(lines: list[str]) -> None:
    """Lambda's lines are events, the function's own have their level, and what is below it is left out."""
    logging = LoggingConfig(LogFormat.JSON, application_level="WARN")
    async with serving(lines.append, logging=logging) as service:
        await told(service, "log")
        await told(service, "leave quietly")
    events = [json.loads(line) for line in lines]
    assert [event.get("type", event.get("message")) for event in events] == [
        "platform.start", "important", "platform.report", "platform.start", "platform.report",
    ]  # fmt: skip
    assert events[1]["level"] == "WARNING"
    assert [event["record"]["status"] for event in events[2::2]] == ["success", "error"]
    assert events[4]["record"]["errorType"] == "Runtime.ExitError"


# Init phases at once.


async def test_init_phases_wait_for_a_core(lines: list[str], tmp_path: Path) -> None:
    """With one core no init phase begins before another one is over, provisioned ones included."""
    async with serving(lines.append, 1, environ={"INITS": str(tmp_path)}) as service:
        service.functions.put_alias("f", "live", service.functions.publish("f"))
        service.concurrency.put_provisioned("f", "live", 2)
        await asyncio.gather(*(told(service, "echo") for _ in range(3)))
        await until(lambda: service.concurrency.get_provisioned("f", "live").status == "READY")
    times = sorted(tuple(map(float, path.name.split("-"))) for path in tmp_path.iterdir())
    assert len(times) == 5
    assert all(end <= begin for (_, end), (begin, _) in pairwise(times))


async def test_init_phase_that_is_run_again_waits_for_a_core_too(lines: list[str], tmp_path: Path) -> None:
    """Two first attempts run out of time; their second ones, inside the invocations, follow each other."""
    (tmp_path / "slow.py").write_text(
        "import pathlib, time\n"
        "begin = time.monotonic()\n"
        f"marks = pathlib.Path({str(tmp_path)!r})\n"
        "attempt = len(list(marks.glob('began-*')))\n"
        "(marks / f'began-{begin}').touch()\n"
        "time.sleep(3600 if attempt < 2 else 0.05)\n"
        "(marks / f'{begin}-{time.monotonic()}').touch()\n"
        "def handler(event, context): return 'done'\n"
    )
    folder = {"handler": "slow.handler", "task_root": tmp_path}
    async with serving(lines.append, 1, **folder, init_limit_s=1.0) as service:
        ended = await asyncio.gather(*(told(service, "") for _ in range(2)))
    assert [answer(one) for one in ended] == ["done", "done"]
    times = sorted(tuple(map(float, path.name.split("-"))) for path in tmp_path.glob("[0-9]*-*"))
    assert len(times) == 2
    assert times[0][1] <= times[1][0]


async def test_environment_that_waits_for_a_core_can_be_stopped(lines: list[str], tmp_path: Path) -> None:
    """The end of the service is a crash for an invocation whose environment has not begun to load."""
    (tmp_path / "stuck.py").write_text("import time; time.sleep(3600)")
    async with serving(lines.append, 1, handler="stuck.handler", task_root=tmp_path) as service:
        calls = [asyncio.create_task(service.invoke("f", None, b"{}")) for _ in range(3)]
        await until(lambda: in_flight(service) == 3)
    ended = await asyncio.gather(*calls)
    assert {one.outcome.error_type for one in ended if isinstance(one, Invoked)} == {"Runtime.ExitError"}


# When this machine fails.


@pytest.mark.parametrize(
    "error",
    [OSError(24, "Too many open files"), RuntimeError("event loop"), ValueError("embedded null byte")],
)
async def test_process_that_cannot_be_started_is_a_failed_invocation(
    lines: list[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Whatever the reason: the caller hears of it, and no concurrency is lost."""

    async def spawn(*arguments: Any) -> None:
        raise error

    monkeypatch.setattr(runtime_process, "spawn_runtime", spawn)
    async with serving(lines.append) as service, asyncio.timeout(PATIENCE_S):
        for _ in range(2):
            invoked = await invoke(service, qualifier=None)
            assert invoked.outcome.error_type == "Runtime.InvalidEntrypoint"
            assert "cannot be started" in json.loads(invoked.outcome.payload)["errorMessage"]
        assert (in_flight(service), service.snapshot().environments) == (0, ())


async def test_log_that_fails_costs_no_concurrency() -> None:
    """A full disk takes the log away, and nothing else."""

    def full(line: str) -> None:
        raise OSError(28, "No space left on device")

    async with serving(full) as service, asyncio.timeout(PATIENCE_S):
        for _ in range(3):
            assert answer(await told(service, "echo"))["event"] == {"do": "echo"}
        assert in_flight(service) == 0


async def test_caller_that_leaves_does_not_take_the_environment_along(
    lines: list[str], tmp_path: Path
) -> None:
    """A cancelled call is served to its end, as on Lambda, and its environment is free again."""
    async with serving(lines.append, environ={"GATE": str(tmp_path)}) as service:
        call = asyncio.create_task(told(service, "gate"))
        await until(lambda: len(running_pids(tmp_path)) == 1)
        call.cancel()
        await asyncio.wait({call})
        (tmp_path / "open").touch()
        await until(lambda: in_flight(service) == 0)
        following = await told(service, "echo")
    assert (len(reports(lines)), following.cold) == (2, False)


FEW_FILES = """
import asyncio, resource, sys
from pathlib import Path
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.settings import FunctionSettings

async def main() -> None:
    async with LambdaService(print) as service:
        settings = FunctionSettings("handlers.nothing", Path({root!r}), 512, 3.0, name="f", init_limit_s=1.0)
        service.create_function(settings)
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), 64))
        await asyncio.gather(*(service.invoke("f", None, b"{{}}") for _ in range(8)))
        print("in flight:", service.snapshot().functions[0].concurrent_executions)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        last = await service.invoke("f", None, b"{{}}")
        print("then:", last.outcome.status)

import uvloop
uvloop.run(main())
"""


@pytest.mark.parametrize("files", [16, 20, 24, 28, 32, 40, 48])
async def test_too_few_open_files_cost_no_concurrency(files: int) -> None:
    """Eight invocations at once are all answered, nothing stays in flight, and no stack trace is seen."""
    code = FEW_FILES.format(root=str(HERE))
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code, str(files)],
        capture_output=True, text=True, timeout=PATIENCE_S, env=environ,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "then: success", run.stdout
    assert "in flight: 0" in run.stdout.splitlines()
    assert "Traceback" not in run.stdout + run.stderr
    assert not re.search(r"never (awaited|retrieved)", run.stderr)
