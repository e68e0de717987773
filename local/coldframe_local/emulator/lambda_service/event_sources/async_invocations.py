"""Asynchronous invocations (`InvocationType=Event`): queued, retried, given up, their records sent on.

As on Lambda: a function error is tried twice more, one minute and then two minutes later; an
event that is throttled waits with a growing pause, for six hours at most. EventInvokeConfig changes
both limits and names destinations; a function that is switched off (no reserved concurrency) gets none.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html (read 2026-11).
Not imitated: dead-letter queues, and that Lambda may deliver an event twice.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from coldframe.capacity.admission import LATEST, Throttle
from coldframe.timing import Clock
from coldframe_local.emulator.lambda_service.event_sources.destinations import (
    Condition,
    EventInvokeConfig,
    NotSent,
    destination_record,
)
from coldframe_local.emulator.lambda_service.lambda_types import Invoked, LambdaException
from coldframe_local.emulator.lambda_service.report import InvocationStatus, timestamp
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log

Sleep = Callable[[float], Awaitable[None]]


class Service(Protocol):
    """Interface of the Lambda service for asynchronous events."""

    async def invoke(
        self,
        name: str,
        qualifier: str | None,
        event: bytes,
        client_context: str = "",
        synchronous: bool = True,
    ) -> Invoked | Throttle:
        """One invocation. Raises LambdaException when there is no such function, version or alias."""

    def is_switched_off(self, name: str) -> bool:
        """Whether the function's reserved concurrency is 0."""

    def get_event_invoke_config(self, name: str, qualifier: str | None) -> EventInvokeConfig:
        """Settings for asynchronous events in the template, or Lambda's defaults."""

    def arn(self, name: str, qualifier: str) -> str:
        """ARN of a version or an alias."""


class Destinations(Protocol):
    """Where records go."""

    async def send(self, arn: str, record: bytes) -> str:
        """Sends one. Returns how it can be read. Raises NotSent."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When an event is tried again. delays_s: after each function error. The rest: after throttles."""

    delays_s: Sequence[float] = (60.0, 120.0)
    throttle_pause_s: float = 1.0
    longest_throttle_pause_s: float = 300.0


@dataclass(slots=True)
class _Event:
    """An event in flight. last: result of its last invocation."""

    name: str
    qualifier: str | None
    payload: bytes
    config: EventInvokeConfig
    arrived_s: float
    last: Invoked | None = None
    invocations: int = 0


class AsyncInvocations:
    """The events that are on their way; `close` drops them, as the end of the emulator does."""

    def __init__(
        self,
        service: Service,
        destinations: Destinations,
        log: Log,
        policy: RetryPolicy | None = None,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._service = service
        self._destinations = destinations
        self._log = log
        self._policy = policy or RetryPolicy()
        self._clock = clock
        self._sleep = sleep
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, name: str, qualifier: str | None, event: bytes) -> None:
        """Queues an event; the caller does not wait for it."""
        config = self._service.get_event_invoke_config(name, qualifier)
        queued = _Event(name, qualifier, event, config, self._clock())
        task = asyncio.create_task(self._deliver(queued))
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

    async def _deliver(self, event: _Event) -> None:
        try:
            condition = await self._end(event)
        except LambdaException as exc:  # its function, version or alias is gone, and its settings with it
            self._log(f"An asynchronous event for {event.name} is discarded: {exc}")
            return
        outcome = await self._keep(event, condition)
        if condition is not Condition.SUCCESS:
            attempts = f"{event.invocations} attempt{'s' if event.invocations != 1 else ''}"
            failed = f"An asynchronous event for {event.name} failed after {attempts}"
            self._log(f"{failed}: {_why(event, condition)}. {outcome}")
        elif outcome:
            self._log(f"An asynchronous event for {event.name} succeeded. {outcome}")

    async def _keep(self, event: _Event, condition: Condition) -> str:
        """Sends the event's record to its destination; what is to be said of that."""
        destination = event.config.destination(condition)
        if destination is None:
            return "" if condition is Condition.SUCCESS else "It has no destination, and is discarded."
        try:
            read_by = await self._destinations.send(destination, self._record(event, condition))
        except NotSent as exc:
            return f"Its record is lost, because {destination} cannot be reached: {exc}."
        return f"Its record is kept: {read_by}"

    async def _end(self, event: _Event) -> Condition:
        """Invokes until the event is served or given up."""
        for delay_s in (*self._policy.delays_s[: event.config.maximum_retry_attempts], None):
            invoked = await self._invoked(event)
            if isinstance(invoked, Condition):
                return invoked
            event.last, event.invocations = invoked, event.invocations + 1
            if invoked.outcome.status is InvocationStatus.SUCCESS:
                return Condition.SUCCESS
            if delay_s is None:
                break
            if not self._has_time(event, delay_s):
                return Condition.EVENT_AGE_EXCEEDED
            await self._sleep(delay_s)
        return Condition.RETRIES_EXHAUSTED

    async def _invoked(self, event: _Event) -> Invoked | Condition:
        """One invocation, as soon as there is an environment for it; or why there will be none."""
        pause_s = self._policy.throttle_pause_s
        while isinstance(
            invoked := await self._service.invoke(
                event.name, event.qualifier, event.payload, synchronous=False
            ),
            Throttle,
        ):
            if self._service.is_switched_off(event.name):
                return Condition.ZERO_RESERVED_CONCURRENCY
            if not self._has_time(event, pause_s):
                return Condition.EVENT_AGE_EXCEEDED
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, self._policy.longest_throttle_pause_s)
        return invoked

    def _has_time(self, event: _Event, wait_s: float) -> bool:
        """Whether the event is not too old after another wait; one that will be is given up at once."""
        return self._clock() - event.arrived_s + wait_s <= event.config.maximum_age_s

    def _record(self, event: _Event, condition: Condition) -> bytes:
        return destination_record(
            condition,
            self._service.arn(event.name, event.qualifier or LATEST),
            event.payload,
            event.last,
            event.invocations,
            event.last.request_id if event.last is not None else str(uuid.uuid4()),
            timestamp(),
        )


def _why(event: _Event, condition: Condition) -> str:
    """Why an event is given up, without anything that it holds."""
    outcome = event.last.outcome if event.last is not None else None
    error = outcome.error_type or str(outcome.status) if outcome is not None else "throttled"
    match condition:
        case Condition.EVENT_AGE_EXCEEDED:
            return f"{error}, for longer than {event.config.maximum_age_s:.0f} s"
        case Condition.ZERO_RESERVED_CONCURRENCY:
            return "the function's reserved concurrency is 0"
    return error
