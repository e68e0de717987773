"""Threads that answer requests within their callers' time; long bodies take turns."""

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future

from msgspec.structs import replace

from coldframe.api.messages import Reply, Request
from coldframe.cpus import usable_cpus
from coldframe.errors import Overloaded
from coldframe.scheduling.caller import Caller
from coldframe.scheduling.limits import Limits
from coldframe.server.bodies import CallerLeft, stated_s

_LONG_BYTES = 65_536
"""Longest body that is read at once. Many longer ones would take all memory and the time of others."""
READERS = 8
"""Requests that are read at once, for each processor. Some wait for a shared cache; but with many more, the
event loop would notice disconnected callers too late.
"""
_BUSY = "The server had no time to read this request. Send it again after the time in Retry-After."


class Threads:
    """Requests in a pool of threads. Used in the event loop's thread.

    expected_wait_s: time until all waiting work is done, for refused callers. count_late: called for an
    answer after its promised moment.
    """

    def __init__(
        self,
        pool: Executor,
        limits: Limits,
        expected_wait_s: Callable[[], float],
        count_late: Callable[[], None] = lambda: None,
    ) -> None:
        self._pool = pool
        self._limits = limits
        self._expected_wait_s = expected_wait_s
        self._count_late = count_late
        self._long_turns = asyncio.Semaphore(usable_cpus())
        self._turns = threading.Semaphore(READERS * usable_cpus())

    async def answer(
        self,
        answer: Callable[[Request], Reply],
        request: Request,
        leaving: Awaitable[object],
        arrived_s: float | None = None,
    ) -> Reply:
        """The reply to a request whose body is read. leaving: ends when the caller disconnects.

        arrived_s: when the last byte arrived, which starts the caller's time; None: now. A long body
        waits for its turn no longer than its own `budget_ms`.
        Raises CallerLeft, and Overloaded when the caller's time is over before a thread begins.
        """
        turn, long_turn = _Turn(self._turns), _LongTurn(self._long_turns)

        def end_turns() -> None:
            turn.end()
            long_turn.end()

        is_long = len(request.body) > _LONG_BYTES
        most_s = stated_s(request.body) if is_long else math.inf
        caller = Caller(arrived_s=arrived_s, limits=self._limits, when_read=end_turns, most_s=most_s)
        departure = asyncio.ensure_future(leaving)
        departure.add_done_callback(lambda _: caller.leave())
        try:
            await asyncio.sleep(0)  # callers that have left free their slots for this request
            if is_long:
                await self._begin(long_turn, caller, departure)
            job = self._pool.submit(self._run, answer, replace(request, caller=caller), caller, turn)
            return await self._result(job, caller, departure)
        finally:
            caller.leave()  # releases the time reserved for further rounds of the request
            long_turn.end()
            departure.cancel()

    def _run(
        self, answer: Callable[[Request], Reply], request: Request, caller: Caller, turn: "_Turn"
    ) -> Reply:
        """Work of a pool's thread for one request."""
        turn.begin()
        try:
            if time.monotonic() > caller.due_s:
                raise Overloaded(_BUSY, self._expected_wait_s())
            return answer(request)
        finally:
            turn.end()

    async def _begin(self, turn: "_LongTurn", caller: Caller, departure: "asyncio.Future[object]") -> None:
        """Waits for the turn of a long body."""
        beginning = asyncio.ensure_future(turn.begin())
        await _wait(beginning, departure, caller.due_s)
        if not beginning.done():
            beginning.cancel()
            raise self._too_late(departure)

    async def _result(
        self, job: "Future[Reply]", caller: Caller, departure: "asyncio.Future[object]"
    ) -> Reply:
        """Waits for the reply. A thread that has begun keeps its request's slot until it is free."""
        working = asyncio.wrap_future(job)
        await _wait(working, departure, caller.due_s)
        if not working.done() and job.cancel():
            raise self._too_late(departure)
        await _wait(working, departure)
        if departure.done():
            await asyncio.wait((working,))
            if not working.cancelled():
                working.exception()  # no other task reads it
            raise CallerLeft
        if caller.promised_s is not None and time.monotonic() > caller.promised_s:
            self._count_late()
        return working.result()

    def _too_late(self, departure: "asyncio.Future[object]") -> Exception:
        return CallerLeft() if departure.done() else Overloaded(_BUSY, self._expected_wait_s())


class _Turn:
    """One request's turn to be read, in its thread; it may be ended more than once."""

    def __init__(self, turns: threading.Semaphore) -> None:
        self._turns = turns
        self._is_held = False

    def begin(self) -> None:
        """Waits for the turn."""
        self._turns.acquire()
        self._is_held = True

    def end(self) -> None:
        """Lets the next one begin."""
        if self._is_held:
            self._is_held = False
            self._turns.release()


class _LongTurn:
    """One request's turn to read a long body. It may be ended in any thread, and more than once."""

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._is_held = False

    async def begin(self) -> None:
        """Waits for the turn."""
        await self._turns.acquire()
        self._is_held = True

    def end(self) -> None:
        """Lets the next one begin."""
        if self._is_held:
            self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._turns.release()


async def _wait(
    work: "asyncio.Future[Reply] | asyncio.Future[None]",
    departure: "asyncio.Future[object]",
    until_s: float | None = None,
) -> None:
    """Waits for the work, as long as its caller does. until_s: by `time.monotonic`; None: no limit."""
    left_s = None if until_s is None else max(0.0, until_s - time.monotonic())
    await asyncio.wait((work, departure), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
