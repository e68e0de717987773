"""Reads SQS queues for the functions that they invoke: gathers batches, invokes, deletes what succeeded.

As Lambda's event source mappings do: a batch is gathered for the window at most; five batches run at once to
begin with, and five more for each second in which the queue has messages; a message that failed is left
alone, and is received again when its visibility timeout is over; a throttled batch is tried again until then.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html (300 more a minute, 1,250 at most) and
https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html, read 2026-11-22.
Not imitated: filters, provisioned pollers, and several pollers that each gather a batch of their own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from coldframe.capacity.admission import Throttle
from coldframe.timing import Clock
from coldframe_local.emulator.lambda_service.event_sources.async_invocations import Sleep
from coldframe_local.emulator.lambda_service.event_sources.sqs import Batch, Message, SqsMapping, failed_ids
from coldframe_local.emulator.lambda_service.lambda_types import Invoked, LambdaException
from coldframe_local.emulator.lambda_service.report import InvocationStatus
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log

_FIRST_BATCHES, _MOST_BATCHES, _MORE_A_SECOND = 5, 1250, 5.0
_MESSAGES_OF_A_CALL = 10
_LONG_POLL_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0


class QueueFailed(Exception):
    """A call to a queue failed, and may be repeated; the text says why."""


class QueueGone(QueueFailed):
    """A queue cannot be called any more."""


class Queues(Protocol):
    """The queues, by name. Every method may raise QueueFailed."""

    async def ready(self) -> None:
        """Returns when the queues are there."""

    async def receive(self, queue: str, most: int, wait_s: float) -> list[Message]:
        """Up to ten messages. Waits `wait_s` for a first one."""

    async def delete(self, queue: str, receipt_handles: Sequence[str]) -> None:
        """Deletes up to ten messages."""


class Functions(Protocol):
    """Interface that invokes functions."""

    async def invoke(
        self,
        name: str,
        qualifier: str | None,
        event: bytes,
        client_context: str = "",
        synchronous: bool = True,
    ) -> Invoked | Throttle:
        """One invocation. Raises LambdaException."""


class Pollers:
    """Reads the queues of all mappings until it is closed. Belongs to one event loop."""

    def __init__(
        self,
        mappings: Sequence[SqsMapping],
        functions: Functions,
        queues: Queues,
        log: Log,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._mappings = mappings
        self._queues = queues
        self._log = log
        self._pollers = [_Poller(each, functions, queues, log, clock, sleep) for each in mappings]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begins to read."""
        self._tasks = [asyncio.create_task(self._run(poller)) for poller in self._pollers]

    async def close(self) -> None:
        """Reads nothing more, and forgets batches on their way: their messages are received again."""
        tasks = [*self._tasks, *(task for poller in self._pollers for task in poller.batches)]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def notes(self) -> Iterator[str]:
        """A line about each mapping."""
        for each in self._mappings:
            window = f" within {each.window_s:.0f} s" if each.window_s else ""
            most = f", {each.maximum_concurrency} at once" if each.maximum_concurrency else ""
            batches = f"in batches of at most {each.batch_size}{window}{most}"
            yield f"Queue {each.queue} calls {each.function} {batches}."

    async def _run(self, poller: _Poller) -> None:
        try:
            await self._queues.ready()
            await poller.run()
        except (QueueGone, LambdaException) as exc:
            self._log(f"Queue {poller.mapping.queue} is read no more: {exc}.")


class _Poller:
    """State of one mapping. batches: batches in flight."""

    def __init__(
        self,
        mapping: SqsMapping,
        functions: Functions,
        queues: Queues,
        log: Log,
        clock: Clock,
        sleep: Sleep,
    ) -> None:
        self.mapping = mapping
        self.batches: set[asyncio.Task[None]] = set()
        self._functions = functions
        self._queues = queues
        self._log = log
        self._clock = clock
        self._sleep = sleep
        self._left: list[Message] = []
        self._busy_since_s: float | None = None
        self._failing = ""

    async def run(self) -> None:
        while True:
            while len(self.batches) >= self._batches_at_once():
                done, _ = await asyncio.wait(self.batches, return_when=asyncio.FIRST_COMPLETED)
                self.batches -= done
            batch, hidden_until_s = await self._gather()
            if batch:
                task = asyncio.create_task(self._serve(batch, hidden_until_s))
                self.batches.add(task)
                task.add_done_callback(self.batches.discard)

    def _batches_at_once(self) -> int:
        """More with each second in which the queue has messages."""
        busy_s = 0.0 if self._busy_since_s is None else self._clock() - self._busy_since_s
        most = self.mapping.maximum_concurrency or _MOST_BATCHES
        return min(most, _FIRST_BATCHES + int(busy_s * _MORE_A_SECOND))

    async def _gather(self) -> tuple[Batch, float]:
        """Messages for one invocation, and when the first one of them is visible again."""
        batch = Batch(self.mapping)
        hidden_until_s = self._clock() + self.mapping.visibility_s
        messages = self._left or await self._receive(_LONG_POLL_S)
        if not messages:
            self._busy_since_s = None
            return batch, hidden_until_s
        if not self._left:
            hidden_until_s = self._clock() + self.mapping.visibility_s
        if self._busy_since_s is None:
            self._busy_since_s = self._clock()
        end_s = self._clock() + self.mapping.window_s
        self._fill(batch, messages)
        while not self._left and not batch.is_full and (rest_s := end_s - self._clock()) > 0:
            self._fill(batch, await self._receive(rest_s, self.mapping.batch_size - len(batch)))
        return batch, hidden_until_s

    async def _receive(self, wait_s: float, most: int = _MESSAGES_OF_A_CALL) -> list[Message]:
        most = min(most, _MESSAGES_OF_A_CALL, self.mapping.batch_size)
        try:
            messages = await self._queues.receive(self.mapping.queue, most, min(wait_s, _LONG_POLL_S))
        except QueueGone:
            raise
        except QueueFailed as exc:
            if str(exc) != self._failing:
                self._log(f"Queue {self.mapping.queue} cannot be read: {exc}. It is tried again.")
            self._failing = str(exc)
            await self._sleep(_FIRST_PAUSE_S)
            return []
        self._failing = ""
        return messages

    def _fill(self, batch: Batch, messages: Sequence[Message]) -> None:
        """Messages that do not fit go into the next batch."""
        self._left = list(messages)
        while self._left and batch.takes(self._left[0]):
            del self._left[0]

    async def _serve(self, batch: Batch, hidden_until_s: float) -> None:
        try:
            ended = await self._invoked(batch, hidden_until_s)
            if ended is not None:
                await self._delete(batch, ended)
        except (QueueFailed, LambdaException) as exc:
            self._log(f"{len(batch)} messages of {self.mapping.queue} will be received again: {exc}.")

    async def _invoked(self, batch: Batch, hidden_until_s: float) -> Invoked | None:
        """How the invocation ended; None where there was no environment before the messages are visible."""
        mapping, pause_s = self.mapping, _FIRST_PAUSE_S
        while True:
            ended = await self._functions.invoke(mapping.function, mapping.qualifier, batch.event())
            if not isinstance(ended, Throttle):
                return ended
            if self._clock() + pause_s >= hidden_until_s:
                self._log(
                    f"{len(batch)} messages of {mapping.queue} go back: {mapping.function} was throttled for"
                    f" {mapping.visibility_s:.0f} s, their visibility timeout."
                )
                return None
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _delete(self, batch: Batch, ended: Invoked) -> None:
        """Deletes the messages that succeeded."""
        mapping, ids = self.mapping, [message["MessageId"] for message in batch.messages]
        outcome = ended.outcome
        succeeded = outcome.status is InvocationStatus.SUCCESS
        failed = failed_ids(outcome.payload, ids, mapping.reports_failures) if succeeded else frozenset(ids)
        if failed:
            why = "" if succeeded else f" ({outcome.error_type or outcome.status})"
            self._log(
                f"{len(failed)} of {len(ids)} messages of {mapping.queue} failed in {mapping.function}{why};"
                f" they are visible again {mapping.visibility_s:.0f} s after they were received."
            )
        done = [each["ReceiptHandle"] for each in batch.messages if each["MessageId"] not in failed]
        for first in range(0, len(done), _MESSAGES_OF_A_CALL):
            await self._queues.delete(mapping.queue, done[first : first + _MESSAGES_OF_A_CALL])
