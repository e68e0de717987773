"""Reading queues in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from coldframe.capacity.admission import Throttle
from coldframe.capacity.states import ThrottleReason
from coldframe_local.emulator.lambda_service.event_sources.pollers import Pollers, QueueFailed, QueueGone
from coldframe_local.emulator.lambda_service.event_sources.sqs import SqsMapping
from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.report import InvocationStatus, Outcome

pytestmark = pytest.mark.anyio
MAPPING = SqsMapping("F", "live", "q", "arn", "us-east-1", reports_failures=True)
SUCCESS = Invoked(Outcome(InvocationStatus.SUCCESS, b'{"batchItemFailures": []}'))
THROTTLE = Throttle(ThrottleReason.ACCOUNT_CONCURRENCY)


class Time:
    def __init__(self) -> None:
        self.now_s = 0.0

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        await asyncio.sleep(0)


class Queue:
    """A queue in memory. errors: raised by the next calls."""

    def __init__(self, time: Time, messages: int, errors: Sequence[Exception] = ()) -> None:
        self._time = time
        self.waiting = [{"MessageId": str(n), "ReceiptHandle": str(n), "Body": "x"} for n in range(messages)]
        self.deleted: list[str] = []
        self.errors = list(errors)

    async def ready(self) -> None:
        pass

    async def receive(self, queue: str, most: int, wait_s: float) -> list[Any]:
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        if not self.waiting:
            self._time.now_s += wait_s
            if self._time.now_s > 1000:
                await asyncio.Event().wait()
        found, self.waiting = self.waiting[:most], self.waiting[most:]
        return found

    async def delete(self, queue: str, receipt_handles: Sequence[str]) -> None:
        assert len(receipt_handles) <= 10
        self.deleted += receipt_handles


class Function:
    """Answers with `ends` in turn, the last of them for ever; waits where there is a gate."""

    def __init__(self, *ends: Invoked | Throttle, gate: asyncio.Event | None = None) -> None:
        self._ends = list(ends)
        self._gate = gate
        self.events: list[bytes] = []
        self.running = self.most = 0

    async def invoke(
        self,
        name: str,
        qualifier: str | None,
        event: bytes,
        client_context: str = "",
        synchronous: bool = True,
    ) -> Invoked | Throttle:
        assert (name, qualifier, synchronous) == ("F", "live", True)
        self.events.append(event)
        self.running += 1
        self.most = max(self.most, self.running)
        if self._gate is not None:
            await self._gate.wait()
        self.running -= 1
        return self._ends.pop(0) if len(self._ends) > 1 else self._ends[0]


async def poll(
    mapping: SqsMapping, function: Function, queue: Queue, time: Time, until: Callable[[], bool]
) -> list[str]:
    lines: list[str] = []
    pollers = Pollers([mapping], function, queue, lines.append, time.clock, time.sleep)
    pollers.start()
    async with asyncio.timeout(10):
        while not until():
            await asyncio.sleep(0)
    await pollers.close()
    return lines


async def test_throttled_until_visible() -> None:
    """A throttled batch is tried until its messages are visible again, and then given back."""
    time = Time()
    queue, function = Queue(time, 1), Function(THROTTLE)
    lines = await poll(MAPPING, function, queue, time, lambda: time.now_s > 900)
    assert len(function.events) > 3
    assert queue.deleted == []
    assert "1 messages of q go back: F was throttled for 30 s, their visibility timeout." in lines


async def test_throttled_for_a_moment() -> None:
    """A batch that finds an environment in time is served."""
    time = Time()
    queue, function = Queue(time, 1), Function(THROTTLE, THROTTLE, SUCCESS)
    await poll(MAPPING, function, queue, time, lambda: queue.deleted == ["0"])
    assert len(function.events) == 3


@pytest.mark.parametrize(("most", "expected"), [(None, 5), (2, 2)])
async def test_batches_at_once(most: int | None, expected: int) -> None:
    """Five batches run at once to begin with, or as many as the mapping allows."""
    time, gate = Time(), asyncio.Event()
    queue, function = Queue(time, 500), Function(SUCCESS, gate=gate)
    mapping = replace(MAPPING, maximum_concurrency=most)

    def settled() -> bool:
        if function.running == expected:
            gate.set()
        return len(queue.deleted) == 500

    await poll(mapping, function, queue, time, settled)
    assert function.most == expected


async def test_more_batches_with_time() -> None:
    """While the queue has messages, five more batches run at once with each second."""
    time = Time()
    queue = Queue(time, 1000)

    class Slow(Function):
        async def invoke(self, *given: Any, **named: Any) -> Invoked | Throttle:
            self.running += 1
            self.most = max(self.most, self.running)
            time.now_s += 0.5
            for _ in range(200):
                await asyncio.sleep(0)
            self.running -= 1
            return SUCCESS

    function = Slow(SUCCESS)
    await poll(MAPPING, function, queue, time, lambda: len(queue.deleted) == 1000)
    assert function.most > 5


async def test_window() -> None:
    """A batch that is not full waits for its window, and for no longer."""
    time = Time()
    queue, function = Queue(time, 15), Function(SUCCESS)
    mapping = replace(MAPPING, batch_size=100, window_s=20)
    await poll(mapping, function, queue, time, lambda: len(queue.deleted) == 15)
    assert len(function.events) == 1
    assert 20 <= time.now_s <= 40


async def test_failing_queue() -> None:
    """A call that fails is repeated, and said once; a queue that is gone is said, and read no more."""
    time = Time()
    queue, function = Queue(time, 1, [QueueFailed("Busy")] * 3), Function(SUCCESS)
    lines = await poll(MAPPING, function, queue, time, lambda: queue.deleted == ["0"])
    assert lines == ["Queue q cannot be read: Busy. It is tried again."]
    gone: list[str] = []
    pollers = Pollers([MAPPING], function, Queue(time, 1, [QueueGone("gone")]), gone.append, time.clock)
    pollers.start()
    while not gone:
        await asyncio.sleep(0)
    await pollers.close()
    assert gone == ["Queue q is read no more: gone."]
