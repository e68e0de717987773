"""One execution environment: a spawned process that runs the function, one invocation at a time.

States, as `coldframe.concurrency` names them:

INIT      The process is starting and loads the function's module.
          first `next`              -> READY
          init/error, exit, limit   -> STOPPED; `start` raises InitFailed
READY     The runtime client waits in `next`.
          invoke                    -> INVOKING
          exit, stop                -> STOPPED
INVOKING  The runtime client works on the one invocation.
          response or error         -> INVOKING, the outcome is kept until the client is done
          `next` after that         -> READY; `invoke` returns the outcome
          exit                      -> STOPPED; the outcome that was kept, or a crash
          timeout, stop             -> STOPPED; timeout, or a crash
STOPPED   The process group is killed, its sockets are closed. Final.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
import uuid
from asyncio.subprocess import Process
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from coldframe.concurrency import EnvironmentState
from local.events import ACCOUNT_ID
from local.process import (
    FunctionSettings,
    Log,
    LogPipe,
    exit_reason,
    kill_group,
    peak_memory_mb,
    runtime_environ,
    spawn_runtime,
)
from local.runtime_api import Invocation, RuntimeApi

# Lambda stops an init after 10 s and runs it again inside the invoke, under the function's
# timeout. Here it simply goes on for that much longer.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html, read 2026-11.
INIT_LIMIT_S = 10.0


class InvocationStatus(StrEnum):
    """How an invocation ended, in the words of Lambda's Telemetry API.

    failure: the function raised; its environment lives on.
    error: the environment is gone, or its result was of no use.
    """

    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an invocation. payload: the function's result, or its error object, as JSON."""

    status: InvocationStatus
    payload: bytes = b""
    error_type: str = ""


class InitFailed(Exception):
    """The init phase ended without a ready environment; the text is Lambda's error type."""


class _Running:
    """The invocation that an environment works on."""

    __slots__ = ("done", "outcome", "request_id", "started_s", "timer")

    def __init__(self, request_id: str, done: asyncio.Future[Outcome]) -> None:
        self.request_id = request_id
        self.done = done
        self.outcome: Outcome | None = None
        self.started_s = time.perf_counter()
        self.timer: asyncio.TimerHandle | None = None


class ExecutionEnvironment:
    """A process that serves invocations; it tells `on_stopped` once, when it is gone."""

    def __init__(self, function: FunctionSettings, log: Log, on_stopped: Callable[[], None]) -> None:
        self._function = function
        self._log = log
        self._on_stopped = on_stopped
        self._state = EnvironmentState.INIT
        self._api = RuntimeApi(self)
        self._process: Process | None = None
        self._life: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running: _Running | None = None
        self._logs: LogPipe | None = None
        self._started_s = 0.0
        self._init_ms = 0.0
        self._report_init = False
        self._peak_memory_mb = 0

    @property
    def state(self) -> EnvironmentState:
        """Where it is in its life."""
        return self._state

    @property
    def pid(self) -> int | None:
        """The process, or None while there is none yet."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """The init phase. Raises InitFailed, and then the environment is stopped."""
        self._started_s = time.perf_counter()
        self._life = asyncio.create_task(self._live())
        limit_s = INIT_LIMIT_S + self._function.timeout_s
        timer = asyncio.get_running_loop().call_later(limit_s, self._fail_init, "Sandbox.Timedout")
        try:
            await self._ready
        finally:
            timer.cancel()

    async def invoke(self, event: bytes) -> Outcome:
        """One invocation; the environment must be READY."""
        if self._state is not EnvironmentState.READY:
            raise RuntimeError(f"The environment is {self._state}, expected READY. Lease it before invoking.")
        self._state = EnvironmentState.INVOKING
        loop = asyncio.get_running_loop()
        self._running = running = _Running(str(uuid.uuid4()), loop.create_future())
        running.timer = loop.call_later(self._function.timeout_s, self._time_out)
        self._log(f"START RequestId: {running.request_id} Version: {self._function.version}")
        self._api.offer(self._invocation(running.request_id, event))
        return await running.done

    async def stop(self) -> None:
        """Kills the process and waits until it is gone."""
        self._terminate(Outcome(InvocationStatus.ERROR, error_type="Runtime.ExitError"))
        if self._life is not None:
            await self._life

    # What the runtime client says (RuntimeListener).

    def polled(self) -> None:
        if self._state is EnvironmentState.INIT:
            self._become_ready()
        elif self._running is not None:
            # A client that asks for more without an answer has lost the invocation.
            lost = Outcome(InvocationStatus.ERROR, error_type="Runtime.NoResponse")
            self._finish(self._running, self._running.outcome or lost, EnvironmentState.READY)

    def responded(self, request_id: str, payload: bytes) -> bool:
        return self._keep(request_id, Outcome(InvocationStatus.SUCCESS, payload))

    def failed(self, request_id: str, error_type: str, payload: bytes) -> bool:
        return self._keep(request_id, Outcome(InvocationStatus.FAILURE, payload, error_type))

    def init_failed(self, error_type: str) -> None:
        self._fail_init(error_type)

    # The process.

    async def _live(self) -> None:
        """The whole life of the process: spawned, watched, reaped."""
        try:
            self._logs = LogPipe(self._log)
            process = await self._spawn(self._logs)
        except OSError as exc:
            self._log(f"The runtime client cannot be started in {self._function.task_root}: {exc.strerror}.")
            self._fail_init("Runtime.InvalidEntrypoint")
        else:
            returncode = await process.wait()
            kill_group(process.pid)  # what the function itself started and left behind
            self._exited(returncode)
        finally:
            if self._logs is not None:
                self._logs.close()
            self._api.close()

    async def _spawn(self, logs: LogPipe) -> Process:
        try:
            environ = runtime_environ(self._function, await self._api.open(), _log_stream())
            self._process = await spawn_runtime(self._function, environ, logs.writer)
        finally:
            logs.close_writer()
        if self._state is EnvironmentState.STOPPED:  # stopped while it was being spawned
            kill_group(self._process.pid)
        return self._process

    def _exited(self, returncode: int) -> None:
        if self._state is EnvironmentState.STOPPED:
            return
        request = f"RequestId: {self._running.request_id} " if self._running is not None else ""
        self._drain()
        self._log(f"{request}Error: Runtime exited with error: {exit_reason(returncode)}")
        self._log("Runtime.ExitError")
        if self._state is EnvironmentState.INIT:
            self._fail_init("Runtime.ExitError")
        else:
            self._terminate(Outcome(InvocationStatus.ERROR, error_type="Runtime.ExitError"))

    # Transitions.

    def _become_ready(self) -> None:
        self._init_ms = (time.perf_counter() - self._started_s) * 1000
        self._report_init = True
        self._measure_memory()  # a process that crashes later cannot be measured any more
        self._state = EnvironmentState.READY
        if not self._ready.done():
            self._ready.set_result(None)

    def _fail_init(self, error_type: str) -> None:
        if self._state is not EnvironmentState.INIT:
            return
        init_ms = (time.perf_counter() - self._started_s) * 1000
        self._drain()
        report = f"INIT_REPORT Init Duration: {init_ms:.2f} ms\tPhase: init\tStatus: error"
        self._log(f"{report}\tError Type: {error_type}")
        self._terminate(Outcome(InvocationStatus.ERROR, error_type=error_type))

    def _keep(self, request_id: str, outcome: Outcome) -> bool:
        """Keeps the answer until the client polls again: only then is it free for more."""
        running = self._running
        if running is None or running.request_id != request_id or running.outcome is not None:
            return False
        running.outcome = outcome
        return True

    def _time_out(self) -> None:
        if self._running is not None:
            self._drain()
            self._log(
                f"{_timestamp()} {self._running.request_id} "
                f"Task timed out after {self._function.timeout_s:.2f} seconds"
            )
            self._terminate(Outcome(InvocationStatus.TIMEOUT, error_type="Sandbox.Timedout"))

    def _terminate(self, outcome: Outcome) -> None:
        """To STOPPED, from any state. An answer that the function gave already stays its answer."""
        if self._state is EnvironmentState.STOPPED:
            return
        if not self._ready.done():
            self._ready.set_exception(InitFailed(outcome.error_type))
        if self._running is not None:
            self._finish(self._running, self._running.outcome or outcome, EnvironmentState.STOPPED)
        self._state = EnvironmentState.STOPPED
        self._on_stopped()
        self._api.close()
        if self._process is not None and self._process.returncode is None:
            kill_group(self._process.pid)

    def _finish(self, running: _Running, outcome: Outcome, state: EnvironmentState) -> None:
        self._running = None
        if running.timer is not None:
            running.timer.cancel()
        self._state = state
        self._drain()
        self._report(running, outcome)
        if not running.done.done():
            running.done.set_result(outcome)

    # What it says.

    def _invocation(self, request_id: str, event: bytes) -> Invocation:
        function, now = self._function, time.time()
        return Invocation(
            request_id=request_id,
            event=event,
            deadline_ms=int((now + function.timeout_s) * 1000),
            invoked_function_arn=f"arn:aws:lambda:{function.region}:{ACCOUNT_ID}:function:{function.name}",
            trace_id=f"Root=1-{int(now):08x}-{os.urandom(12).hex()};Parent={os.urandom(8).hex()};Sampled=0",
        )

    def _report(self, running: _Running, outcome: Outcome) -> None:
        """END and REPORT. INIT is billed, with the invocation that waited for it."""
        duration_ms = (time.perf_counter() - running.started_s) * 1000
        billed_ms = math.ceil(duration_ms + (self._init_ms if self._report_init else 0.0))
        fields = [
            f"REPORT RequestId: {running.request_id}",
            f"Duration: {duration_ms:.2f} ms",
            f"Billed Duration: {billed_ms} ms",
            f"Memory Size: {self._function.memory_mb} MB",
            f"Max Memory Used: {self._measure_memory()} MB",
        ]
        if self._report_init:
            fields.append(f"Init Duration: {self._init_ms:.2f} ms")
            self._report_init = False
        if outcome.status is InvocationStatus.ERROR:
            fields.append(f"Status: error\tError Type: {outcome.error_type}")
        elif outcome.status is InvocationStatus.TIMEOUT:
            fields.append("Status: timeout")
        self._log(f"END RequestId: {running.request_id}")
        self._log("\t".join(fields))

    def _measure_memory(self) -> int:
        measured = peak_memory_mb(self._process.pid) if self._process is not None else None
        self._peak_memory_mb = max(self._peak_memory_mb, measured or 0)
        return self._peak_memory_mb

    def _drain(self) -> None:
        if self._logs is not None:
            self._logs.drain()


def _log_stream() -> str:
    return f"{time.strftime('%Y/%m/%d', time.gmtime())}/[$LATEST]{uuid.uuid4().hex}"


def _timestamp() -> str:
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
