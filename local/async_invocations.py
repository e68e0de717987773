"""Asynchronous invocations (`InvocationType=Event`): queued, retried, discarded.

As on Lambda: a function error is tried twice more, one minute and then two minutes later; an
event that is throttled waits with a growing pause, for six hours at most.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html (read 2026-11).
Not imitated: destinations, dead-letter queues, and that Lambda may deliver an event twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from coldframe.concurrency import Throttle
from local.lambda_types import Invoked, LambdaException
from local.process import Log
from local.report import InvocationStatus

Clock = Callable[[], float]
Invoke = Callable[[str, str | None, bytes], Awaitable[Invoked | Throttle]]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When an event is tried again. delays_s: after each function error. The rest: after throttles."""

    delays_s: Sequence[float] = (60.0, 120.0)
    throttle_pause_s: float = 1.0
    longest_throttle_pause_s: float = 300.0
    maximum_age_s: float = 6 * 3600.0


class AsyncInvocations:
    """The events that are on their way; `close` drops them, as the end of the emulator does."""

    def __init__(
        self,
        invoke: Invoke,
        log: Log,
        policy: RetryPolicy | None = None,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._invoke = invoke
        self._log = log
        self._policy = policy or RetryPolicy()
        self._clock = clock
        self._sleep = sleep
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, name: str, qualifier: str | None, event: bytes) -> None:
        """Queues an event; the caller does not wait for it."""
        task = asyncio.create_task(self._deliver(name, qualifier, event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def idle(self) -> None:
        """Returns when nothing is queued any more."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Drops what is queued."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _deliver(self, name: str, qualifier: str | None, event: bytes) -> None:
        failure = ""
        attempts = 0
        for delay_s in (*self._policy.delays_s, None):
            try:
                failure = await self._attempt(name, qualifier, event)
            except LambdaException as exc:  # its function, version or alias is gone
                failure, delay_s = str(exc), None
            attempts += 1
            if not failure or delay_s is None:
                break
            await self._sleep(delay_s)
        if failure:
            self._log(f"An asynchronous event for {name} is discarded after {attempts} attempts: {failure}")

    async def _attempt(self, name: str, qualifier: str | None, event: bytes) -> str:
        """One invocation, as soon as there is an environment for it; why it failed, or ""."""
        sent_s, pause_s = self._clock(), self._policy.throttle_pause_s
        while isinstance(invoked := await self._invoke(name, qualifier, event), Throttle):
            if self._clock() - sent_s + pause_s > self._policy.maximum_age_s:
                return f"throttled for {self._policy.maximum_age_s:.0f} s"
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, self._policy.longest_throttle_pause_s)
        succeeded = invoked.outcome.status is InvocationStatus.SUCCESS
        return "" if succeeded else invoked.outcome.error_type or str(invoked.outcome.status)
