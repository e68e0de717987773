"""Asynchronous invocations: retries, throttles, and when an event is discarded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coldframe.concurrency import Throttle, ThrottleReason
from local.async_invocations import AsyncInvocations, RetryPolicy
from local.lambda_types import Invoked, ResourceNotFoundException
from local.report import InvocationStatus, Outcome

pytestmark = pytest.mark.anyio

Answer = Invoked | Throttle | ResourceNotFoundException

THROTTLE = Throttle(ThrottleReason.RESERVED_CONCURRENCY)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def ended(status: InvocationStatus, error_type: str = "") -> Invoked:
    return Invoked(
        outcome=Outcome(status, b"", error_type),
        executed_version="1",
        request_id="id",
        log_tail=b"",
        duration_ms=1.0,
        billed_ms=1,
        init_ms=None,
        max_memory_mb=1,
        cold=False,
        provisioned=False,
        spillover=False,
    )


SUCCESS = ended(InvocationStatus.SUCCESS)
FAILURE = ended(InvocationStatus.FAILURE, "LookupError")


class World:
    """A Lambda service that answers as it is told, and time that passes in sleeps only."""

    def __init__(self, answers: Iterator[Answer]) -> None:
        self.answers = answers
        self.now_s = 0.0
        self.invoked_at: list[float] = []
        self.lines: list[str] = []

    async def invoke(self, name: str, qualifier: str | None, event: bytes) -> Invoked | Throttle:
        self.invoked_at.append(self.now_s)
        answer = next(self.answers)
        if isinstance(answer, ResourceNotFoundException):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    async def send(self, policy: RetryPolicy | None = None) -> None:
        """One event, until nothing is left to do for it."""
        events = AsyncInvocations(self.invoke, self.lines.append, policy, lambda: self.now_s, self.sleep)
        events.send("name", None, b"{}")
        await events.idle()


async def test_success_is_the_end() -> None:
    """An event that is served is not sent again."""
    world = World(iter([SUCCESS]))
    await world.send()
    assert (world.invoked_at, world.lines) == ([0.0], [])


async def test_errors_are_tried_twice_more() -> None:
    """After one minute and after two more; then the event is discarded, which the log says."""
    world = World(iter([FAILURE, FAILURE, FAILURE]))
    await world.send()
    assert world.invoked_at == [0.0, 60.0, 180.0]
    assert world.lines == ["An asynchronous event for name is discarded after 3 attempts: LookupError"]


async def test_success_after_an_error() -> None:
    """The first attempt that succeeds ends it."""
    world = World(iter([FAILURE, SUCCESS]))
    await world.send()
    assert (world.invoked_at, world.lines) == ([0.0, 60.0], [])


async def test_throttles_wait_longer_each_time() -> None:
    """A throttled event waits 1, 2, 4… seconds, and that is no attempt."""
    world = World(iter([THROTTLE, THROTTLE, THROTTLE, FAILURE, SUCCESS]))
    await world.send()
    assert world.invoked_at == [0.0, 1.0, 3.0, 7.0, 67.0]


async def test_throttled_for_too_long() -> None:
    """An event that is throttled for hours is discarded."""
    world = World(iter([THROTTLE] * 1000))
    X
    assert world.invoked_at[-1] <= 600.0
    assert world.lines == [
        "An asynchronous event for name is discarded after 1 attempts: throttled for 600 s"
    ]


async def test_function_that_is_gone() -> None:
    """Nothing is tried again for a function that does not exist."""
    world = World(iter([ResourceNotFoundException("no such alias")]))
    await world.send()
    assert world.invoked_at == [0.0]
    assert world.lines == ["An asynchronous event for name is discarded after 1 attempts: no such alias"]
