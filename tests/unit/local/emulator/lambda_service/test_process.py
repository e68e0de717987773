"""What an environment's process is given, and how its end is told."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from coldframe_local.emulator.lambda_service.environments.memory import MemoryMeter
from coldframe_local.emulator.lambda_service.environments.spawn import (
    exit_reason,
    function_environ,
    runtime_environ,
)
from coldframe_local.emulator.lambda_service.settings import FunctionSettings
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import LogPipe


def settings(task_root: Path, **environ: str) -> FunctionSettings:
    return FunctionSettings("app.handler", task_root, memory_mb=1769, timeout_s=29.0, environ=environ)


def test_little_of_the_shell_passes() -> None:
    """Only the project's variables and those that programs need to start reach the function."""
    shell = {"PATH": "/bin", "HOME": "/root", "AWS_PROFILE": "mine", "COLDFRAME_A": "shell"}
    assert function_environ({}, shell) == {"PATH": "/bin", "COLDFRAME_A": "shell"}


def test_own_variables_win_over_the_shell() -> None:
    """What the emulator is told beats what the shell says."""
    assert function_environ({"COLDFRAME_A": "told"}, {"COLDFRAME_A": "shell"}) == {"COLDFRAME_A": "told"}


def test_reserved_variables_win_over_the_functions_own(tmp_path: Path) -> None:
    """Lambda's reserved variables cannot be changed, except for the region to be in."""
    own = settings(tmp_path, _HANDLER="other", AWS_REGION="eu-central-1")
    environ = runtime_environ(own, "stream", "on-demand")
    assert environ["_HANDLER"] == "app.handler"
    assert environ["AWS_REGION"] == environ["AWS_DEFAULT_REGION"] == "eu-central-1"


def test_layers_are_on_the_path(tmp_path: Path) -> None:
    """The python folder of every layer takes the place of /opt/python."""
    for layer in ("b", "a"):
        (tmp_path / "layers" / layer / "python").mkdir(parents=True)
    (tmp_path / "layers" / "model").mkdir()
    environ = runtime_environ(settings(tmp_path), "stream", "on-demand")
    folders = [str(tmp_path / "layers" / layer / "python") for layer in ("a", "b")]
    assert environ["PYTHONPATH"] == os.pathsep.join(folders)


def test_end_of_a_process_is_told_in_lambdas_words() -> None:
    """An exit has a status, a signal a name."""
    assert exit_reason(3) == "exit status 3"
    assert exit_reason(-9).startswith("signal: killed")


def test_memory_is_measured() -> None:
    """This process holds some memory and held as much at its peak; one that has ended holds none."""
    meter = MemoryMeter(os.getpid())
    peak_mb, resident_mb = meter.peak_mb(), meter.resident_mb()
    meter.close()
    assert peak_mb is not None
    assert peak_mb > 0
    assert resident_mb is None or 0 < resident_mb <= peak_mb


def test_memory_of_a_process_that_has_ended_is_unknown() -> None:
    """What was open when it ended tells nothing any more, and does not fail."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        meter = MemoryMeter(process.pid)
        process.communicate(b"\n")
    assert (meter.peak_mb(), meter.resident_mb()) == (None, None)
    meter.close()


def test_line_without_end_is_logged_in_parts() -> None:
    """A line over a megabyte is logged before it ends, and nothing of it is lost."""
    lines: list[str] = []

    async def write(chunks: int) -> int:
        pipe = LogPipe(lines.append)
        for _ in range(chunks):
            os.write(pipe.writer, b"x" * 16_384)
            await asyncio.sleep(0)  # the loop reads, one turn behind
        early = len(lines)
        pipe.close()
        return early

    assert asyncio.run(write(100)) > 0
    assert "".join(lines) == "x" * 100 * 16_384
