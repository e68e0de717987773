"""One run of AWS's runtime client: its process, its Runtime API and its output, from spawn to reaping."""

from __future__ import annotations

import asyncio
import errno
import time
from asyncio.subprocess import Process
from collections.abc import Mapping
from typing import Protocol

import msgspec

from coldframe_local.emulator.lambda_service.environments.memory import MemoryMeter
from coldframe_local.emulator.lambda_service.environments.runtime_api import (
    Invocation,
    RuntimeApi,
    RuntimeListener,
)
from coldframe_local.emulator.lambda_service.environments.scratch import ScratchFolder
from coldframe_local.emulator.lambda_service.environments.spawn import kill_group, limit_files, spawn_runtime
from coldframe_local.emulator.lambda_service.settings import FunctionSettings
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log, LogPipe


class ProcessListener(RuntimeListener, Protocol):
    """Receiver of the runtime client's messages, and of its end if the emulator did not kill it."""

    def exited(self, returncode: int) -> None:
        """The process has ended by itself. Negative: by that signal."""


class RuntimeProcess:
    """A process that starts at once; nothing more is told to the listener after `kill`."""

    def __init__(
        self,
        function: FunctionSettings,
        environ: Mapping[str, str],
        scratch: ScratchFolder,
        log: Log,
        listener: ProcessListener,
    ) -> None:
        self._function = function
        self._environ = environ
        self._scratch = scratch
        self._log = log
        self._listener = listener
        self._api = RuntimeApi(listener)
        self._logs: LogPipe | None = None
        self._process: Process | None = None
        self._killed = False
        self._memory: MemoryMeter | None = None
        self._peak_memory_mb = 0
        self._started_s = time.perf_counter()
        self._life = asyncio.create_task(self._live())

    @property
    def pid(self) -> int | None:
        """The process, or None while there is none yet."""
        return self._process.pid if self._process is not None else None

    def age_ms(self) -> float:
        """Since it was asked for."""
        return (time.perf_counter() - self._started_s) * 1000

    def offer(self, invocation: Invocation) -> None:
        """Hands an invocation to the waiting client."""
        self._api.offer(invocation)

    def restore(self) -> None:
        """Lets a client go on that waits behind its snapshot."""
        self._api.restore()

    def drain(self) -> None:
        """Logs what the process has written so far."""
        if self._logs is not None:
            self._logs.drain()

    def measure_memory_mb(self) -> int:
        """The most memory that the process has held, as long as it could be measured."""
        measured = self._memory.peak_mb() if self._memory is not None else None
        self._peak_memory_mb = max(self._peak_memory_mb, measured or 0)
        return self._peak_memory_mb

    def resident_memory_mb(self) -> int:
        """The memory that the process holds now; 0 when that cannot be told."""
        resident = self._memory.resident_mb() if self._memory is not None else None
        return resident or 0

    def kill(self) -> None:
        """Ends the process without another word to the listener."""
        self._killed = True
        self._api.close()
        if self._process is not None and self._process.returncode is None:
            kill_group(self._process.pid)

    def kill_for_memory(self) -> None:
        """Ends the process as the kernel does when memory is used up: the listener hears of a SIGKILL."""
        if self.pid is not None and not self._killed:
            kill_group(self.pid)

    async def wait(self) -> None:
        """Until the process is reaped and its output logged."""
        await self._life

    async def _live(self) -> None:
        try:
            process = await self._spawn()
        except Exception as exc:  # whatever it is: an invocation waits, and nobody else would tell it
            self._cannot_start(exc)
        else:
            returncode = await process.wait()
            kill_group(process.pid)  # what the function itself started and left behind
            if not self._killed:
                self._listener.exited(returncode)
        finally:
            self._free()

    async def _spawn(self) -> Process:
        self._logs = LogPipe(self._log)
        try:
            own = {"TMPDIR": str(self._scratch.path()), "AWS_LAMBDA_RUNTIME_API": await self._api.open()}
            self._process = await spawn_runtime(self._function, {**self._environ, **own}, self._logs.writer)
        finally:
            self._logs.close_writer()
        limit_files(self._process.pid)
        self._memory = MemoryMeter(self._process.pid)
        if self._killed:  # while it was being spawned
            kill_group(self._process.pid)
        return self._process

    def _cannot_start(self, error: Exception) -> None:
        """A failed init phase, whose reason is this machine and not the function."""
        if self._process is not None:
            kill_group(self._process.pid)
        why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        message = f"The runtime client cannot be started in {self._function.task_root}: {why}."
        if isinstance(error, OSError) and error.errno in _OUT_OF_FILES:
            message += " An environment takes seven open files: raise `ulimit -n`, or have fewer."
        self._log(message)
        if not self._killed:
            error_type = "Runtime.InvalidEntrypoint"
            payload = msgspec.json.encode({"errorType": error_type, "errorMessage": f"Error: {message}"})
            self._listener.init_failed(error_type, payload)

    def _free(self) -> None:
        if self._logs is not None:
            self._logs.close()
        if self._memory is not None:
            self._memory.close()
        self._api.close()


_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)
