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
        sent_s, pause_s = self._clock(), self._policy.throttle_pause_s
        delays_s = list(self._policy.delays_s)
        while True:
            try:
                invoked = await self._invoke(name, qualifier, event)
            except LambdaException as exc:  # its function, version or alias is gone
                self._log(f"An asynchronous event for {name} is discarded: {exc}")
                return
            if isinstance(invoked, Invoked):
                if invoked.outcome.status is InvocationStatus.SUCCESS:
                    return
                if not delays_s:
                    self._log(
                        f"An asynchronous event for {name} is discarded after {len(self._policy.delays_s) + 1} "
                        f"attempts. Error Type: {invoked.outcome.error_type}"
                    )
                    return
                await self._sleep(delays_s.pop(0))
            elif self._clock() - sent_s + pause_s > self._policy.maximum_age_s:
                self._log(f"An asynchronous event for {name} is discarded: throttled for too long.")
                return
            else:
                await self._sleep(pause_s)
                pause_s = min(2 * pause_s, self._policy.longest_throttle_pause_s)
