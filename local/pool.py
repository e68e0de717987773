"""The environments of one function: asks the admission rules, then does what they decide."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from coldframe import concurrency
from coldframe.concurrency import (
    Arrival,
    Died,
    EnvironmentState,
    Finished,
    Initialized,
    KeepAliveCheck,
    Lease,
    Limits,
    Start,
    Stop,
    Throttle,
)
from local.environment import ExecutionEnvironment, InitFailed, InvocationStatus, Outcome
from local.process import FunctionSettings, Log, die_with_parent

Clock = Callable[[], float]


class EnvironmentPool:
    """Serves invocations, each from an environment of its own.

    clock: seconds, for keep-alive; a test may turn it forward.
    """

    def __init__(
        self, function: FunctionSettings, limits: Limits, log: Log, clock: Clock = time.monotonic
    ) -> None:
        self._function = function
        self._log = log
        self._clock = clock
        self._state = concurrency.State(limits)
        self._environments: dict[int, ExecutionEnvironment] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._expiry: asyncio.TimerHandle | None = None
        self._closed = False
        # Looked up once and before any environment, because it would count as its init.
        die_with_parent()

    @property
    def state(self) -> concurrency.State:
        """What the admission rules know."""
        return self._state

    @property
    def environments(self) -> tuple[ExecutionEnvironment, ...]:
        """Those that are not stopped, oldest first."""
        return tuple(self._environments.values())

    async def invoke(self, event: bytes) -> Outcome | Throttle:
        """The outcome of one invocation, or why it was refused."""
        if self._closed:
            return Outcome(InvocationStatus.ERROR, error_type="Runtime.ExitError")
        self.stop_expired()
        decision = self._decide(Arrival())
        match decision:
            case Lease(environment_id):
                return await self._invoke(environment_id, event)
            case Start(environment_id):
                return await self._start_and_invoke(environment_id, event)
            case Throttle():
                return decision
        raise AssertionError(f"{decision} is no answer to an arrival")

    def stop_expired(self) -> None:
        """Stops the environments that were idle for the keep-alive time."""
        decision = self._decide(KeepAliveCheck())
        if isinstance(decision, Stop):
            for environment_id in decision.environment_ids:
                self._stop_in_background(self._environments[environment_id])

    async def close(self) -> None:
        """Stops every environment and waits until no process is left. Callers get a crash."""
        self._closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        for environment in self.environments:
            self._stop_in_background(environment)
        # Environments that died by themselves are among them too, until they are reaped.
        # Taken out here: a gather of tasks that are done may return without letting their
        # callbacks run, which would make this loop spin for ever (Python 3.13).
        while self._stopping:
            stopping, self._stopping = self._stopping, set()
            await asyncio.gather(*stopping)

    async def _start_and_invoke(self, environment_id: int, event: bytes) -> Outcome:
        environment = ExecutionEnvironment(self._function, self._log, lambda: self._stopped(environment_id))
        self._environments[environment_id] = environment
        try:
            await environment.start()
        except InitFailed as exc:
            return Outcome(InvocationStatus.ERROR, error_type=str(exc))
        if environment.state is EnvironmentState.STOPPED:  # between its first `next` and now
            return Outcome(InvocationStatus.ERROR, error_type="Runtime.ExitError")
        self._decide(Initialized(environment_id))
        return await self._invoke(environment_id, event)

    async def _invoke(self, environment_id: int, event: bytes) -> Outcome:
        environment = self._environments[environment_id]
        outcome = await environment.invoke(event)
        # It may have died with this invocation, or right after it; then `_stopped` has said so.
        if environment.state is EnvironmentState.READY:
            self._decide(Finished(environment_id))
            self._schedule_expiry()
        return outcome

    def _stopped(self, environment_id: int) -> None:
        environment = self._environments.pop(environment_id)
        self._decide(Died(environment_id))
        self._stop_in_background(environment)  # its process has yet to be reaped

    def _stop_in_background(self, environment: ExecutionEnvironment) -> None:
        task = asyncio.create_task(environment.stop())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    def _decide(self, event: concurrency.Event) -> concurrency.Decision:
        self._state, decision = concurrency.decide(self._state, event, self._clock())
        return decision

    def _schedule_expiry(self) -> None:
        """One timer at a time, for the environment that is due first."""
        due = concurrency.next_expiry(self._state)
        if self._expiry is None and due is not None and not self._closed:
            delay_s = max(0.0, due - self._clock())
            self._expiry = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        self.stop_expired()
        self._schedule_expiry()
