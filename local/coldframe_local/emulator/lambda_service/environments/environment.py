"""One execution environment: a process that runs the function, one invocation at a time.

States, as `coldframe.capacity.admission` names them:

INIT      The process is starting and loads the function's module, once there is a core for it.
          `restore/next`            -> still INIT: a snapshot, which continues when it is restored
          first `next`              -> READY; `init` returns True
          init/error, exit, limit   -> still INIT, without a process; `init` returns False
          invoke after that         -> INVOKING, and the init phase is run again inside the invocation
READY     The runtime client waits in `next`.
          invoke                    -> INVOKING
          exit, stop                -> STOPPED
INVOKING  The runtime client works on the one invocation.
          response or error         -> INVOKING, the outcome is kept until the client is done
          `next` after that         -> READY; `invoke` returns how the invocation ended
          exit, init failed again   -> STOPPED; the outcome that was kept, or a crash
          timeout, stop             -> STOPPED; timeout, or a crash
STOPPED   The process group is killed, its sockets are closed, its temporary files removed. Final.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from coldframe.capacity.admission import EnvironmentState
from coldframe_local.emulator.lambda_service.environments.cpu import CpuLimit, vcpus
from coldframe_local.emulator.lambda_service.environments.memory import MemoryLimit
from coldframe_local.emulator.lambda_service.environments.restore import Restore
from coldframe_local.emulator.lambda_service.environments.running import Call, Running
from coldframe_local.emulator.lambda_service.environments.runtime_api import RESULT_TOO_LARGE
from coldframe_local.emulator.lambda_service.environments.runtime_process import RuntimeProcess
from coldframe_local.emulator.lambda_service.environments.scratch import ScratchFolder
from coldframe_local.emulator.lambda_service.environments.spawn import (
    can_freeze,
    exit_message,
    freeze_group,
    runtime_environ,
)
from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.report import InvocationStatus, Outcome
from coldframe_local.emulator.lambda_service.settings import FunctionSettings
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log, StreamLog, no_stream
from coldframe_local.emulator.lambda_service.telemetry.platform_log import platform_log


class ExecutionEnvironment:
    """A process that serves invocations.

    on_finished: told after each invocation that leaves it READY. on_stopped: told once, when it is gone.
    cores: one for each init phase that may run at the same time. An init phase waits for its turn before
    its time is measured: on Lambda every environment has cores of its own, and nothing waits. So the wait
    is not billed, though it is part of what the client waits.
    stream_log: gets each line of the log, too, with the name of this environment's stream.
    restored: it starts from a snapshot. This machine cannot keep a process as a snapshot, so each loads anew,
    ahead of its restore or during AWS's own part of it. The time after `restore/next` is measured.
    """

    def __init__(
        self,
        function: FunctionSettings,
        provisioned: bool,
        log: Log,
        on_finished: Callable[[], None],
        on_stopped: Callable[[], None],
        cores: asyncio.Semaphore,
        restored: bool = False,
        stream_log: StreamLog = no_stream,
    ) -> None:
        self.function = function
        self.provisioned = provisioned
        self._freezes = function.freeze and can_freeze()
        self.invocations = 0
        self.started_s = time.perf_counter()
        self.init_ms = 0.0
        self._log = log
        self._on_finished = on_finished
        self._on_stopped = on_stopped
        self._cores = cores
        self._state = EnvironmentState.INIT
        self._process: RuntimeProcess | None = None
        self._initializing: asyncio.Future[bool] | None = None
        self._init_timer: asyncio.TimerHandle | None = None
        self._memory = MemoryLimit(function.memory_mb, self._kill_for_memory)
        self._killed_for_memory = False
        self._cpu_limit: CpuLimit | None = None
        self._running: Running | None = None
        self._report_init = False
        self._restore = Restore(function.restore_ms) if restored else None
        self._loading: asyncio.Future[bool] | None = None
        self._reaping: list[RuntimeProcess] = []
        self._scratch = ScratchFolder()
        kind = "provisioned-concurrency" if provisioned else "on-demand"
        kind = "snap-start" if function.starts_from_snapshot else kind
        stream = _log_stream(function.version)
        self._stream_log = partial(stream_log, stream)
        self._lines = platform_log(function, stream, kind)
        self._environ = runtime_environ(function, stream, kind)

    @property
    def state(self) -> EnvironmentState:
        """Where it is in its life."""
        return self._state

    @property
    def pid(self) -> int | None:
        """The process, or None while there is none."""
        return self._process.pid if self._process is not None else None

    @property
    def max_memory_mb(self) -> int:
        """The most that it has held."""
        return self._memory.peak_mb

    @property
    def invocation_started_s(self) -> float | None:
        """When the invocation that it works on began, by `time.perf_counter`; None when idle."""
        return self._running.started_s if self._running is not None else None

    async def init(self) -> bool:
        """The init phase, or the restore. Whether the function is loaded; if not, the log says why."""
        if self._restore is not None:
            return await self._restored(self._restore)
        async with self._cores:
            if self._state is EnvironmentState.STOPPED:  # while it waited
                return False
            self._initializing = asyncio.get_running_loop().create_future()
            self._say(self._lines.init_start())
            self._start_process()
            self._limit_init()
            return await self._initializing

    async def load(self, *, announced: bool = False) -> bool:
        """Loads the function up to its snapshot; whether that went well.

        Ahead of the restore, as when a version is published; or by the restore itself, which waits for it.
        announced: in the log, as an init phase.
        """
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load(announced))
        return await asyncio.shield(self._loading)

    async def _load(self, announced: bool) -> bool:
        restore = self._restore
        async with self._cores:
            if self._state is EnvironmentState.STOPPED or restore is None:  # while it waited
                return False
            self._initializing = asyncio.get_running_loop().create_future()
            if announced:
                self._say(self._lines.init_start())
            self._start_process()
            self._limit_init()
            either: set[asyncio.Future[Any]] = {restore.loaded, self._initializing}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            self._cancel_timers()
        if self._initializing.done() or self._process is None:  # it could not be loaded
            return False
        if announced:
            self._drain()
            self._say(self._lines.init_report(self._process.age_ms(), "init"))
        return True

    async def _restored(self, restore: Restore) -> bool:
        self.started_s = time.perf_counter()
        restore.start()
        if not await self.load():
            return False
        self._say(self._lines.restore_start())
        await restore.until_due()
        async with self._cores:
            initializing = self._initializing
            if initializing is None or self._process is None or initializing.done():
                return False
            restore.begin()
            self._memory.watch(self._process)
            self._limit_init()
            self._freeze(False)
            self._process.restore()
            return await initializing

    def _limit_init(self) -> None:
        loop = asyncio.get_running_loop()
        self._init_timer = loop.call_later(self._init_limit_s(), self._init_timed_out)

    async def invoke(self, call: Call) -> Invoked:
        """One invocation. The environment must be READY, or its init phase have failed."""
        if self._init_has_failed():
            return await self._init_and_invoke(call)
        running = self._begin(call)
        if self._state is EnvironmentState.INVOKING and self._process is not None:
            self._memory.watch(self._process)
            self._hand_out(running, self._process)
        return await running.done

    async def _init_and_invoke(self, call: Call) -> Invoked:
        """The init phase again, inside the invocation. It waits for a core, too, before its time is taken."""
        async with self._cores:
            running = self._begin(call)
            if self._state is EnvironmentState.INVOKING:
                self._initializing = asyncio.get_running_loop().create_future()
                self._start_process()
                await self._initializing
        return await running.done

    def _begin(self, call: Call) -> Running:
        """To INVOKING; an environment that was stopped since its init phase ends the invocation at once."""
        loop = asyncio.get_running_loop()
        running = Running(call, loop.create_future())
        if self._state is EnvironmentState.STOPPED:
            ended = Outcome.error("Runtime.ExitError", "Error: Runtime exited")
            running.end(self._ended(running, (self._restore and self._restore.failure) or ended))
            return running
        if self._state is not EnvironmentState.READY and not self._init_has_failed():
            raise RuntimeError(f"The environment is {self._state}, expected READY. Lease it before invoking.")
        self._state = EnvironmentState.INVOKING
        self._running = running
        self.invocations += 1
        running.timer = loop.call_later(self.function.timeout_s, self._time_out)
        return running

    async def stop(self) -> None:
        """Kills the process and waits until it is gone, with what it wrote to its temporary folder."""
        self._stop(Outcome(InvocationStatus.ERROR, error_type="Runtime.ExitError"))
        for process in self._reaping:
            await process.wait()
        await asyncio.to_thread(self._scratch.remove)

    # What the process says (ProcessListener).

    def polled(self) -> None:
        running = self._running
        if self._state is EnvironmentState.INIT:
            self._become_ready()
        elif running is None or self._process is None:
            return
        elif not running.handed_out:
            self._hand_out(running, self._process)
        elif self._memory.is_exceeded(self._process):
            self._kill_for_memory()  # as Lambda would have, before it answered
        else:
            # A client that asks for more without an answer has lost the invocation.
            lost = Outcome.error("Runtime.NoResponse", f"RequestId: {running.request_id} Error: no response")
            outcome = running.outcome or lost
            self._finish(running, outcome, EnvironmentState.READY, outcome.error_type)

    def loaded(self) -> None:
        if self._restore is not None and self._running is None:
            self._freeze(True)
            self._restore.load()
        elif self._process is not None:
            self._process.restore()  # a full init phase has no snapshot to wait for

    def restore_failed(self, error_type: str, payload: bytes) -> None:
        self._fail_init("error", Outcome(InvocationStatus.ERROR, payload, error_type))

    def responded(self, request_id: str, payload: bytes) -> bool:
        return self._keep(request_id, Outcome(InvocationStatus.SUCCESS, payload))

    def failed(self, request_id: str, error_type: str, payload: bytes) -> bool:
        unusable = error_type == RESULT_TOO_LARGE
        status = InvocationStatus.ERROR if unusable else InvocationStatus.FAILURE
        return self._keep(request_id, Outcome(status, payload, error_type))

    def init_failed(self, error_type: str, payload: bytes) -> None:
        self._fail_init("error", Outcome(InvocationStatus.ERROR, payload, error_type))

    def exited(self, returncode: int) -> None:
        running = self._running
        request = f"RequestId: {running.request_id} " if running is not None else ""
        message = request + exit_message(returncode)
        self._drain()
        self._say(self._lines.exited(message))
        crash = Outcome.error("Runtime.ExitError", message)
        if self._state is EnvironmentState.INIT or (running is not None and not running.handed_out):
            self._fail_init("error", crash)
        else:
            self._stop(crash)

    # The init phase.

    def _start_process(self) -> None:
        self._process = RuntimeProcess(self.function, self._environ, self._scratch, self._log_line, self)
        self._reaping.append(self._process)
        self._killed_for_memory = False
        self._memory.watch(self._process)

    def _init_limit_s(self) -> float:
        function = self.function
        if self.provisioned or (self._restore is not None and not self._restore.began):
            return max(function.provisioned_init_limit_s, function.timeout_s)
        return function.init_limit_s

    def _init_has_failed(self) -> bool:
        return self._state is EnvironmentState.INIT and self._process is None

    def _become_ready(self) -> None:
        process = self._process
        if process is None:
            return
        if self._restore is None or not self._restore.began:
            self.init_ms = process.age_ms()
        # Measured in any case: a process that crashes later cannot be measured any more.
        if self._memory.is_exceeded(process):
            self._kill_for_memory()
            return
        if self.provisioned:
            self._drain()
            self._say(self._lines.init_report(self.init_ms, "init"))
        if self._restore is not None and self._restore.began:
            self._drain()
            self._say(self._lines.restore_report(self._restore.end()))
        self._report_init = not self.provisioned
        self._state = EnvironmentState.READY
        self._cancel_timers()
        if self.provisioned:  # any other has an invocation waiting
            self._freeze(True)
        self._initialized(True)

    def _init_timed_out(self) -> None:
        self._fail_init("timeout", Outcome(InvocationStatus.TIMEOUT, error_type="Sandbox.Timedout"))

    def _fail_init(self, status: str, outcome: Outcome) -> None:
        """Ends an init phase; the first one is forgiven, and run again inside the invocation."""
        process, running = self._process, self._running
        if process is None:
            return
        self._drain()
        self._memory.is_exceeded(process)  # notes the peak
        phase = "init" if running is None else "invoke"
        error_type = outcome.error_type if status == "error" else ""
        if self._restore is not None and self._restore.began and running is None:
            self._say(self._lines.restore_report(self._restore.end(), status, error_type))
            self._restore.failure = outcome
            self._stop(outcome)
            return
        self._say(self._lines.init_report(process.age_ms(), phase, status, error_type))
        if running is not None:
            self._say_start(running)
            self._stop(outcome)
            return
        self._cancel_timers()
        process.kill()
        self._process = None
        self._initialized(False)

    def _initialized(self, ready: bool) -> None:
        if self._initializing is not None and not self._initializing.done():
            self._initializing.set_result(ready)

    # The invocation.

    def _hand_out(self, running: Running, process: RuntimeProcess) -> None:
        running.handed_out = True
        self._initialized(True)
        self._say_start(running)
        self._freeze(False)
        if self.function.cpu_from_memory and process.pid is not None:
            # From here on: an init phase has two CPUs on Lambda, whatever the memory.
            self._cpu_limit = CpuLimit(process.pid, vcpus(self.function.memory_mb))
        process.offer(running.invocation(self.function.timeout_s))

    def _freeze(self, frozen: bool) -> None:
        """As Lambda does between invocations: what runs in the background waits for the next one."""
        if self._freezes and self.pid is not None:
            freeze_group(self.pid, frozen=frozen)

    def _keep(self, request_id: str, outcome: Outcome) -> bool:
        """Keeps the answer until the client polls again: only then is it free for more."""
        running = self._running
        if running is None or running.request_id != request_id or running.outcome is not None:
            return False
        if self._killed_for_memory:  # what it wrote before its end counts no more
            return False
        running.outcome = outcome
        return True

    def _time_out(self) -> None:
        running = self._running
        if running is None:
            return
        message = f"Task timed out after {self.function.timeout_s:.2f} seconds"
        self._drain()
        if not running.handed_out and self._process is not None:
            self._say(self._lines.init_report(self._process.age_ms(), "invoke", "timeout"))
            self._say_start(running)
        self._say(self._lines.timed_out(running.request_id, message))
        text = f"RequestId: {running.request_id} Error: {message}"
        payload = msgspec.json.encode({"errorType": "Sandbox.Timedout", "errorMessage": text})
        self._stop(Outcome(InvocationStatus.TIMEOUT, payload, "Sandbox.Timedout"))

    def _kill_for_memory(self) -> None:
        self._killed_for_memory = True
        if self._running is not None:
            self._running.outcome = None
        if self._process is not None:
            self._process.kill_for_memory()

    def _stop(self, outcome: Outcome) -> None:
        """To STOPPED, from any state. An answer that the function gave already stays its answer."""
        if self._state is EnvironmentState.STOPPED:
            return
        if self._process is not None:
            self._memory.is_exceeded(self._process)  # notes the peak
        if self._running is not None:
            ended = self._running.outcome or outcome
            self._finish(self._running, ended, EnvironmentState.STOPPED, outcome.error_type)
        self._state = EnvironmentState.STOPPED
        self._cancel_timers()
        self._initialized(False)
        if self._process is not None:
            self._process.kill()
        self._on_stopped()

    def _finish(self, running: Running, outcome: Outcome, state: EnvironmentState, error_type: str) -> None:
        """error_type: why the environment ends, which is what REPORT names: a result that was too large
        is an error for the caller, and makes the runtime client leave: Runtime.ExitError in the log.

        Seen on AWS: https://github.com/DataBiosphere/azul/issues/7466 (2026-09-17), read 2026-11-21.
        """
        self._state = state
        self._cancel_timers()
        if self._cpu_limit is not None:
            self._cpu_limit.lift()
        if state is EnvironmentState.READY:
            self._freeze(True)
        self._drain()
        invoked = self._ended(running, outcome)
        self._report_init = False
        self._say(self._lines.end(invoked, error_type))
        self._running = None
        running.end(replace(invoked, log_tail=bytes(running.tail)))
        if state is EnvironmentState.READY:
            self._on_finished()

    def _ended(self, running: Running, outcome: Outcome) -> Invoked:
        restored = self._report_init and self._restore is not None and self._restore.began
        return Invoked(
            outcome=outcome,
            request_id=running.request_id,
            duration_ms=running.duration_ms(),
            init_ms=self.init_ms if self._report_init and not restored else None,
            restore_ms=self._restore.restore_ms if restored and self._restore else None,
            billed_restore_ms=self._restore.billed_ms if restored and self._restore else 0,
            memory_size_mb=self.function.memory_mb,
            max_memory_mb=self._memory.peak_mb,
            executed_version=self.function.version,
            provisioned=self.provisioned,
        )

    # The log.

    def _say_start(self, running: Running) -> None:
        self._say(self._lines.start(running.request_id, running.call.arn))

    def _say(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._log_line(line)

    def _log_line(self, line: str) -> None:
        if self._running is not None:
            self._running.tail.add(line)
        self._log(line)
        self._stream_log(line)

    def _drain(self) -> None:
        if self._process is not None:
            self._process.drain()

    def _cancel_timers(self) -> None:
        self._memory.unwatch()
        if self._init_timer is not None:
            self._init_timer.cancel()


def _log_stream(version: str) -> str:
    return f"{time.strftime('%Y/%m/%d', time.gmtime())}/[{version}]{uuid.uuid4().hex}"
