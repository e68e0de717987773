"""One execution environment: a process that runs the function, one invocation at a time.

States, as `coldframe.capacity.admission` names them:

INIT      The process is starting and loads the function's module.
          first `next`              -> READY; `init` returns True
          init/error, exit, limit   -> still INIT, without a process; `init` returns False
          invoke after that         -> INVOKING, and the init phase is run again inside the invocation
READY     The runtime client waits in `next`.
          invoke                    -> INVOKING
          exit, stop                -> STOPPED
INVOKING  The runtime client works on the one invocation.
          response or error         -> INVOKING, the outcome is kept until the client is done
          `next` after that         -> READY; `invoke` returns the report
          exit, init failed again   -> STOPPED; the outcome that was kept, or a crash
          timeout, stop             -> STOPPED; timeout, or a crash
STOPPED   The process group is killed, its sockets are closed. Final.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Callable

import msgspec

from coldframe.capacity.admission import EnvironmentState
from local.lambda_service.cpu import CpuLimit, vcpus
from local.lambda_service.process import FunctionSettings, Log, exit_reason, freeze_group, runtime_environ
from local.lambda_service.report import InvocationStatus, LogTail, Outcome, Report, init_report, timestamp
from local.lambda_service.runtime_api import Invocation
from local.lambda_service.runtime_process import RuntimeProcess

_MEMORY_CHECK_S = 0.02


class _Running:
    """The invocation that an environment works on."""

    __slots__ = ("arn", "begun", "done", "event", "outcome", "request_id", "started_s", "tail", "timer")

    def __init__(self, event: bytes, arn: str, done: asyncio.Future[Report]) -> None:
        self.request_id = str(uuid.uuid4())
        self.event = event
        self.arn = arn
        self.begun = False  # not as long as the init phase is run again inside the invocation
        self.done = done
        self.outcome: Outcome | None = None
        self.started_s = time.perf_counter()
        self.timer: asyncio.TimerHandle | None = None
        self.tail = LogTail()


class ExecutionEnvironment:
    """A process that serves invocations; it tells `on_stopped` once, when it is gone."""

    def __init__(
        self,
        function: FunctionSettings,
        provisioned: bool,
        log: Log,
        on_stopped: Callable[[], None],
    ) -> None:
        self.function = function
        self.provisioned = provisioned
        self.invocations = 0
        self.started_s = time.perf_counter()
        self.init_ms = 0.0
        self.max_memory_mb = 0
        self._log = log
        self._on_stopped = on_stopped
        self._state = EnvironmentState.INIT
        self._process: RuntimeProcess | None = None
        self._initializing: asyncio.Future[bool] | None = None
        self._init_timer: asyncio.TimerHandle | None = None
        self._memory_timer: asyncio.TimerHandle | None = None
        self._killed_for_memory = False
        self._cpu_limit: CpuLimit | None = None
        self._running: _Running | None = None
        self._report_init = False
        self._reaping: list[RuntimeProcess] = []
        kind = "provisioned-concurrency" if provisioned else "on-demand"
        self._environ = runtime_environ(function, _log_stream(function.version), kind)

    @property
    def state(self) -> EnvironmentState:
        """Where it is in its life."""
        return self._state

    @property
    def pid(self) -> int | None:
        """The process, or None while there is none."""
        return self._process.pid if self._process is not None else None

    @property
    def invocation_started_s(self) -> float | None:
        """When the invocation that it works on began, by `time.perf_counter`; None when idle."""
        return self._running.started_s if self._running is not None else None

    async def init(self) -> bool:
        """The init phase. Whether the function is loaded; if not, the log says why."""
        loop = asyncio.get_running_loop()
        self._initializing = loop.create_future()
        self._start_process()
        self._init_timer = loop.call_later(self._init_limit_s(), self._init_timed_out)
        return await self._initializing

    async def invoke(self, event: bytes, arn: str) -> Report:
        """One invocation. The environment must be READY, or its init phase have failed.

        arn: the function as the caller named it, with the qualifier.
        """
        loop = asyncio.get_running_loop()
        running = _Running(event, arn, loop.create_future())
        if self._state is EnvironmentState.STOPPED:  # since its init phase
            return self._report(running, _error("Runtime.ExitError", "Error: Runtime exited"))
        if self._state is not EnvironmentState.READY and not self._init_has_failed():
            raise RuntimeError(f"The environment is {self._state}, expected READY. Lease it before invoking.")
        self._state = EnvironmentState.INVOKING
        self._running = running
        self.invocations += 1
        running.timer = loop.call_later(self.function.timeout_s, self._time_out)
        if self._process is None:
            self._start_process()
        else:
            self._watch_memory()
            self._begin(running, self._process)
        return await running.done

    async def stop(self) -> None:
        """Kills the process and waits until it is gone."""
        self._stop(Outcome(InvocationStatus.ERROR, error_type="Runtime.ExitError"))
        for process in self._reaping:
            await process.wait()

    # What the process says (ProcessListener).

    def polled(self) -> None:
        running = self._running
        if self._state is EnvironmentState.INIT:
            self._become_ready()
        elif running is None or self._process is None:
            return
        elif not running.begun:
            self._begin(running, self._process)
        elif self._over_memory(self._process):
            self._kill_for_memory()  # as Lambda would have, before it answered
        else:
            # A client that asks for more without an answer has lost the invocation.
            lost = _error("Runtime.NoResponse", f"RequestId: {running.request_id} Error: no response")
            self._finish(running, running.outcome or lost, EnvironmentState.READY)

    def responded(self, request_id: str, payload: bytes) -> bool:
        return self._keep(request_id, Outcome(InvocationStatus.SUCCESS, payload))

    def failed(self, request_id: str, error_type: str, payload: bytes) -> bool:
        return self._keep(request_id, Outcome(InvocationStatus.FAILURE, payload, error_type))

    def init_failed(self, error_type: str, payload: bytes) -> None:
        self._fail_init("error", Outcome(InvocationStatus.ERROR, payload, error_type))

    def exited(self, returncode: int) -> None:
        running = self._running
        request = f"RequestId: {running.request_id} " if running is not None else ""
        message = f"{request}Error: Runtime exited with error: {exit_reason(returncode)}"
        self._drain()
        self._say(message)
        self._say("Runtime.ExitError")
        crash = _error("Runtime.ExitError", message)
        if self._state is EnvironmentState.INIT or (running is not None and not running.begun):
            self._fail_init("error", crash)
        else:
            self._stop(crash)

    # The init phase.

    def _start_process(self) -> None:
        self._process = RuntimeProcess(self.function, self._environ, self._say, self)
        self._reaping.append(self._process)
        self._killed_for_memory = False
        self._watch_memory()

    def _init_limit_s(self) -> float:
        function = self.function
        if self.provisioned:
            return max(function.provisioned_init_limit_s, function.timeout_s)
        return function.init_limit_s

    def _init_has_failed(self) -> bool:
        return self._state is EnvironmentState.INIT and self._process is None

    def _become_ready(self) -> None:
        process = self._process
        if process is None:
            return
        self.init_ms = (time.perf_counter() - process.started_s) * 1000
        # Measured in any case: a process that crashes later cannot be measured any more.
        if self._over_memory(process):
            self._kill_for_memory()
            return
        if self.provisioned:
            self._drain()
            self._say(init_report(self.init_ms, "init"))
        self._report_init = not self.provisioned
        self._state = EnvironmentState.READY
        self._cancel_timers()
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
        self._over_memory(process)
        init_ms = (time.perf_counter() - process.started_s) * 1000
        phase = "init" if running is None else "invoke"
        error_type = outcome.error_type if status == "error" else ""
        self._say(init_report(init_ms, phase, status, error_type))
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

    def _begin(self, running: _Running, process: RuntimeProcess) -> None:
        running.begun = True
        self._say_start(running)
        self._freeze(False)
        if self.function.cpu_from_memory and process.pid is not None:
            # From here on: an init phase has two CPUs on Lambda, whatever the memory.
            self._cpu_limit = CpuLimit(process.pid, vcpus(self.function.memory_mb))
        process.offer(self._invocation(running))

    def _freeze(self, frozen: bool) -> None:
        """As Lambda does between invocations: what runs in the background waits for the next one."""
        if self.function.freeze and self.pid is not None:
            freeze_group(self.pid, frozen=frozen)

    def _invocation(self, running: _Running) -> Invocation:
        now = time.time()
        left_s = self.function.timeout_s - (time.perf_counter() - running.started_s)
        return Invocation(
            request_id=running.request_id,
            event=running.event,
            deadline_ms=int((now + left_s) * 1000),
            invoked_function_arn=running.arn,
            trace_id=f"Root=1-{int(now):08x}-{os.urandom(12).hex()};Parent={os.urandom(8).hex()};Sampled=0",
        )

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
        if not running.begun and self._process is not None:
            init_ms = (time.perf_counter() - self._process.started_s) * 1000
            self._say(init_report(init_ms, "invoke", "timeout"))
            self._say_start(running)
        self._say(f"{timestamp()} {running.request_id} {message}")
        text = f"RequestId: {running.request_id} Error: {message}"
        payload = msgspec.json.encode({"errorType": "Sandbox.Timedout", "errorMessage": text})
        self._stop(Outcome(InvocationStatus.TIMEOUT, payload, "Sandbox.Timedout"))

    def _stop(self, outcome: Outcome) -> None:
        """To STOPPED, from any state. An answer that the function gave already stays its answer."""
        if self._state is EnvironmentState.STOPPED:
            return
        if self._process is not None:
            self._over_memory(self._process)
        if self._running is not None:
            self._finish(self._running, self._running.outcome or outcome, EnvironmentState.STOPPED)
        self._state = EnvironmentState.STOPPED
        self._cancel_timers()
        self._initialized(False)
        if self._process is not None:
            self._process.kill()
        self._on_stopped()

    def _finish(self, running: _Running, outcome: Outcome, state: EnvironmentState) -> None:
        self._state = state
        self._cancel_timers()
        if running.timer is not None:
            running.timer.cancel()
        if self._cpu_limit is not None:
            self._cpu_limit.lift()
        if state is EnvironmentState.READY:
            self._freeze(True)
        self._drain()
        report = self._report(running, outcome)
        self._report_init = False
        self._say(f"END RequestId: {running.request_id}")
        self._say(str(report))
        self._running = None
        if not running.done.done():
            running.done.set_result(report)

    def _report(self, running: _Running, outcome: Outcome) -> Report:
        return Report(
            outcome=outcome,
            request_id=running.request_id,
            duration_ms=(time.perf_counter() - running.started_s) * 1000,
            init_ms=self.init_ms if self._report_init else None,
            memory_size_mb=self.function.memory_mb,
            max_memory_mb=self.max_memory_mb,
            log_tail=running.tail,
        )

    # Memory. A limit on address space (RLIMIT_AS) would also count what is mapped and never touched:
    # onnxruntime's arenas, threads' stacks and shared libraries, several times what Lambda counts. So
    # what the process really holds is looked at while it works, and its peak when it answers.

    def _watch_memory(self) -> None:
        self._memory_timer = asyncio.get_running_loop().call_later(_MEMORY_CHECK_S, self._check_memory)

    def _check_memory(self) -> None:
        if self._process is not None and self._process.resident_memory_mb() > self.function.memory_mb:
            self._kill_for_memory()
        else:
            self._watch_memory()

    def _over_memory(self, process: RuntimeProcess) -> bool:
        """Whether a process has ever held more than its limit; notes its peak, up to the limit."""
        peak_mb, limit_mb = process.measure_memory_mb(), self.function.memory_mb
        self.max_memory_mb = max(self.max_memory_mb, min(peak_mb, limit_mb))
        return peak_mb > limit_mb

    def _kill_for_memory(self) -> None:
        self._killed_for_memory = True
        self.max_memory_mb = self.function.memory_mb
        if self._running is not None:
            self._running.outcome = None
        if self._process is not None:
            self._process.kill_for_memory()

    # What it says.

    def _say_start(self, running: _Running) -> None:
        self._say(f"START RequestId: {running.request_id} Version: {self.function.version}")

    def _say(self, line: str) -> None:
        if self._running is not None:
            self._running.tail.add(line)
        self._log(line)

    def _drain(self) -> None:
        if self._process is not None:
            self._process.drain()

    def _cancel_timers(self) -> None:
        for timer in (self._init_timer, self._memory_timer):
            if timer is not None:
                timer.cancel()


def _error(error_type: str, message: str) -> Outcome:
    payload = msgspec.json.encode({"errorType": error_type, "errorMessage": message})
    return Outcome(InvocationStatus.ERROR, payload, error_type)


def _log_stream(version: str) -> str:
    return f"{time.strftime('%Y/%m/%d', time.gmtime())}/[{version}]{uuid.uuid4().hex}"
