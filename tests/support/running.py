"""A running emulator for tests: in this process, or as a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import httpx

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions, one_function
from tests.support.emulation import HERE, PATIENCE_S

ROOT = HERE.parent.parent

LogLines = list[str]

_OF_THE_FUNCTION = signature(one_function).parameters.keys()


def options(lines: LogLines, **changes: Any) -> EmulatorOptions:
    """Options of an emulator with one function. changes: of `EmulatorOptions`, and of `one_function`."""
    of_function = {name: changes.pop(name) for name in _OF_THE_FUNCTION & changes.keys()}
    template = one_function(**{"handler": "handlers.route", "task_root": HERE, **of_function})
    return EmulatorOptions(**{"template": template, "port": 0, "log": lines.append, **changes})


def client_of(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, trust_env=False)


@asynccontextmanager
async def serving(lines: LogLines, clock: Any = None, **changes: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an emulator that serves the handlers of this folder."""
    clock_argument = {} if clock is None else {"clock": clock}
    async with (
        Emulator(options(lines, **changes), **clock_argument) as emulator,
        client_of(emulator.url) as client,
    ):
        yield client


SERVE = """
import sys
from pathlib import Path
from coldframe_local.emulator.front.emulator import run
from coldframe_local.emulator.options import EmulatorOptions, one_function
task_root, gate = sys.argv[1:]
run(EmulatorOptions(one_function("handlers.route", Path(task_root)), port=0, environ={"GATE": gate}))
"""


@asynccontextmanager
async def emulator_process(
    gate: Path, script: str = SERVE, **environ: str
) -> AsyncIterator[tuple[Process, httpx.AsyncClient]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        str(HERE),
        str(gate),
        stdout=PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environ,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        assert line.startswith("Coldframe is listening on http://127.0.0.1:"), line
        async with client_of(line.split()[-1]) as client:
            yield process, client
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def shell_environ() -> dict[str, str]:
    """What a shell has that sets nothing of ours, and nothing of AWS."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("COLDFRAME_", "AWS_"))}


@contextmanager
def coldframe_up(
    *said: str,
    arguments: Sequence[str] = (),
    log: list[str] | None = None,
    program: Path = Path(sys.executable).parent / "coldframe",
    cwd: Path = ROOT,
) -> Iterator[list[str]]:
    """`coldframe up` on a free port, until the block ends; the addresses that it tells behind these words.

    said: in the order in which its lines have them. log: gets the later lines when the block has ended.
    """
    command = [str(program), "up", "--port", "0", *arguments]
    found: list[str] = []
    with subprocess.Popen(
        command, cwd=cwd, env=shell_environ(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        while len(found) < len(said):
            line = process.stdout.readline()
            assert line, f"`coldframe up` ended before it said: {said[len(found)]}"
            if match := re.search(rf"{said[len(found)]} (http://\S+)", line):
                found.append(match[1])
        read = [] if log is None else log
        # A log that nobody reads must not fill its pipe.
        reader = threading.Thread(target=lambda: read.extend(process.stdout or ()))
        reader.start()
        try:
            yield found
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
            reader.join()
