"""The environments of one function: asks the admission rules, then does what they decide."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from coldframe.capacity import admission as concurrency
from coldframe.capacity.admission import (
    Adjust,
    Arrival,
    Died,
    EnvironmentState,
    Finished,
    Initialized,
    KeepAliveCheck,
    Lease,
    Limits,
    Recycle,
    SetLimits,
    SetProvisioned,
    SetSnapStart,
    Start,
    Throttle,
)
from coldframe.capacity.idle_expiry import Keeps
from coldframe.timing import Clock
from coldframe_local.emulator.lambda_service.environments.environment import ExecutionEnvironment
from coldframe_local.emulator.lambda_service.environments.running import Call
from coldframe_local.emulator.lambda_service.environments.snapshots import Slot, Snapshots
from coldframe_local.emulator.lambda_service.environments.spawn import die_with_parent
from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.settings import FunctionSettings
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log, StreamLog, no_stream

T = TypeVar("T")


class PoolClosed(Exception):
    """The emulator is leaving: nothing is started any more."""


class EnvironmentPool:
    """Serves invocations, each from an environment of its own.

    function: the version is set for each environment.
    on_change: told after every event. on_provisioned: told the milliseconds of each init phase of a
    provisioned environment.
    cores: one for each init phase that may run at the same time, shared with other functions.
    keeps: how long each environment is kept idle; None: as the limits say.
    clock: seconds, for keep-alive and rates; a test may turn it forward.
    stream_log: gets each line of the log, too, with its environment's stream.
    """

    def __init__(
        self,
        function: FunctionSettings,
        limits: Limits,
        log: Log,
        cores: asyncio.Semaphore,
        *,
        on_change: Callable[[], None] = lambda: None,
        on_provisioned: Callable[[float], None] = lambda init_ms: None,
        keeps: Keeps | None = None,
        clock: Clock = time.monotonic,
        stream_log: StreamLog = no_stream,
    ) -> None:
        self._function = function
        self._log = log
        self._stream_log = stream_log
        self._cores = cores
        self._on_change = on_change
        self._on_provisioned = on_provisioned
        self._keeps = keeps or Keeps()
        self._clock = clock
        self._state = concurrency.State(limits)
        self._environments: dict[int, ExecutionEnvironment] = {}
        self._snapshots = Snapshots(self._make_snapshot, self._in_background)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._expiry: asyncio.TimerHandle | None = None
        self._closed = False
        # Looked up once and before any environment, because it would count as its init.
        die_with_parent()

    @property
    def state(self) -> concurrency.State:
        """State of the admission rules."""
        return self._state

    def environments(self) -> Iterator[tuple[int, ExecutionEnvironment]]:
        """Environments that are not stopped, by id, oldest first."""
        yield from self._environments.items()

    async def invoke(self, call: Call, arrival: Arrival) -> Invoked | Throttle:
        """The end of one invocation, or why it was refused. Raises PoolClosed.

        A caller that leaves (is cancelled) does not end the invocation: it continues, as on Lambda, and
        its environment becomes free when it is over.
        """
        if self._closed:
            raise PoolClosed
        self.stop_expired()
        decision = self._decide(arrival)
        if isinstance(decision, Throttle):
            return decision
        if not isinstance(decision, Lease | Start):
            raise AssertionError(f"{decision} is not an answer to an arrival")
        environment_id = decision.environment_id
        if isinstance(decision, Start):
            invoked = await asyncio.shield(
                self._in_background(
                    self._start_and_invoke(environment_id, arrival.version, call, decision.restored)
                )
            )
        else:
            invoked = await self._environments[environment_id].invoke(call)
        return replace(
            invoked,
            environment_id=environment_id,
            cold=isinstance(decision, Start),
            spillover=decision.spillover,
        )

    def set_limits(self, limits: Limits) -> None:
        """Limits of invocations that arrive from now on."""
        self._decide(SetLimits(limits))

    def set_provisioned(self, version: str, target: int) -> None:
        """Provisioned environments of a version: started in the background, or stopped."""
        self._decide(SetProvisioned(version, target))

    def set_snapstart(self, version: str) -> None:
        """Environments of this version start from its snapshot from now on."""
        self._decide(SetSnapStart(version, True))
        self._snapshots.prepare(version, announced=True)

    def recycle(self) -> None:
        """No environment of before serves another invocation."""
        self._decide(Recycle())
        self._snapshots.renew()

    def stop_expired(self) -> None:
        """Stops the environments that were idle for the keep-alive time."""
        self._decide(KeepAliveCheck())

    async def close(self) -> None:
        """Stops every environment and waits until no process is left. Callers get a crash."""
        self._closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        self._snapshots.close()
        for environment in list(self._environments.values()):
            self._in_background(environment.stop())
        # Environments that died by themselves are among them too, until they are reaped.
        # Taken out here: a gather of tasks that are done may return without letting their
        # callbacks run, which would make this loop spin for ever (Python 3.13).
        while self._tasks:
            tasks, self._tasks = self._tasks, set()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _start_and_invoke(
        self, environment_id: int, version: str, call: Call, restored: bool
    ) -> Invoked:
        environment = self._new(environment_id, version, provisioned=False, restored=restored)
        try:
            await environment.init()  # if it fails, the invocation runs it again
            if environment.state is not EnvironmentState.STOPPED:
                self._decide(Initialized(environment_id))
            return await environment.invoke(call)
        except Exception:
            # A fault of the emulator: the environment goes, so that its concurrency is given back.
            self._in_background(environment.stop())
            raise

    def _finished(self, environment_id: int) -> None:
        """Told by the environment and not by who waits for the answer, because a caller may have left."""
        self._decide(Finished(environment_id, self._keeps.of(environment_id)))
        self._schedule_expiry()

    def _begin(self, environment_id: int, version: str) -> None:
        if not self._closed:
            self._in_background(self._provision(environment_id, version))

    async def _provision(self, environment_id: int, version: str) -> None:
        if self._closed or self._state.state_of(environment_id) is EnvironmentState.STOPPED:
            return  # stopped before it was started
        environment = self._new(environment_id, version, provisioned=True)
        if await environment.init() and environment.state is EnvironmentState.READY:
            self._on_provisioned(environment.init_ms)
            self._decide(Initialized(environment_id))
        else:
            await environment.stop()

    def _new(
        self, environment_id: int, version: str, *, provisioned: bool, restored: bool = False
    ) -> ExecutionEnvironment:
        if restored and self._snapshots.has(version):
            environment = self._snapshots.take(version, environment_id)
        else:
            slot = Slot()
            slot.environment_id = environment_id
            environment = self._make(version, slot, provisioned, restored)
        self._environments[environment_id] = environment
        return environment

    def _make(self, version: str, slot: Slot, provisioned: bool, restored: bool) -> ExecutionEnvironment:
        return ExecutionEnvironment(
            replace(self._function, version=version),
            provisioned,
            self._log,
            on_finished=lambda: self._finished(slot.environment_id),
            on_stopped=lambda: self._stopped(slot),
            cores=self._cores,
            restored=restored,
            stream_log=self._stream_log,
        )

    def _make_snapshot(self, version: str, slot: Slot) -> ExecutionEnvironment:
        return self._make(version, slot, provisioned=False, restored=True)

    def _stopped(self, slot: Slot) -> None:
        if slot.environment_id not in self._environments:  # it waited behind its snapshot
            self._snapshots.lost(slot)
            return
        environment = self._environments.pop(slot.environment_id)
        self._in_background(environment.stop())  # its process has yet to be reaped
        self._decide(Died(slot.environment_id))

    def _in_background(self, coroutine: Coroutine[None, None, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _decide(self, event: concurrency.Event) -> concurrency.Decision:
        self._state, decision = concurrency.decide(self._state, event, self._clock())
        if isinstance(decision, Adjust):
            self._adjust(decision)
        self._on_change()
        return decision

    def _adjust(self, adjust: Adjust) -> None:
        for environment_id in adjust.stop:
            # One that was only just decided on may not have been made yet.
            environment = self._environments.get(environment_id)
            if environment is not None:
                self._in_background(environment.stop())
        if not self._closed:
            for environment_id in adjust.start:
                starting = self._state.environments[environment_id]
                delay_s = starting.started_at - self._clock()
                if delay_s > 0:  # the allocation rate
                    loop = asyncio.get_running_loop()
                    loop.call_later(delay_s, self._begin, environment_id, starting.version)
                else:
                    self._begin(environment_id, starting.version)

    def _schedule_expiry(self) -> None:
        """One timer at a time, for the environment that is due first."""
        if self._expiry is not None or self._closed:
            return
        due = concurrency.next_expiry(self._state)
        if due is not None:
            delay_s = max(0.0, due - self._clock())
            self._expiry = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        self.stop_expired()
        self._schedule_expiry()
