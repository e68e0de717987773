"""Threads that answer requests: by turns where bodies are long, and within the time that callers wait."""

import asyncio
import gc
import math
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from coldframe.api.messages import Reply, Request
from coldframe.cpus import usable_cpus
from coldframe.errors import Overloaded
from coldframe.scheduling.limits import Limits
from coldframe.server.bodies import CallerLeft
from coldframe.server.threads import READERS, Threads

SHORT = Request("POST", "/v1/predict", body=b"{}")
LONG = Request("POST", "/v1/predict", body=b" " * 100_000)
REPLY = Reply(200, b"", {})
PATIENCE_S = 60.0


class Work:
    """What threads do: each begins, and ends when it is told to. reads_first: it reads before it waits."""

    def __init__(self, reads_first: bool = False) -> None:
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()
        self.callers: list[Any] = []
        self._reads_first = reads_first

    def answer(self, request: Request) -> Reply:
        self.callers.append(request.caller)
        if self._reads_first and request.caller is not None:
            request.caller.has_read()
        self.begun.release()
        assert self.may_end.wait(PATIENCE_S)
        return REPLY


class Front(Threads):
    """Callers who come are patient, until they are in a hurry."""

    def hurry(self, objective_s: float) -> None:
        self._limits = Limits(objective_s=objective_s)


def play(script: Coroutine[Any, Any, None]) -> None:
    asyncio.run(script)


def threads(pool: ThreadPoolExecutor, objective_s: float = 1e6) -> Front:
    return Front(pool, Limits(objective_s=objective_s), lambda: 2.5)


async def stay() -> None:
    await asyncio.sleep(math.inf)


async def begun(work: Work, count: int) -> None:
    """Waits until so many threads have begun."""
    for _ in range(count):
        assert await asyncio.to_thread(work.begun.acquire, timeout=PATIENCE_S)


def test_long_bodies_take_turns() -> None:
    """As many long bodies as there are processors are read at once; short ones have threads meanwhile."""
    work, cpus = Work(), usable_cpus()

    async def script() -> None:
        with ThreadPoolExecutor(cpus + 8) as pool:
            front = threads(pool)
            long = [asyncio.create_task(front.answer(work.answer, LONG, stay())) for _ in range(cpus + 2)]
            await begun(work, cpus)
            short = asyncio.create_task(front.answer(work.answer, SHORT, stay()))
            await begun(work, 1)
            assert len(work.callers) == cpus + 1
            work.may_end.set()
            assert await asyncio.gather(*long, short) == [REPLY] * (cpus + 3)

    play(script())


def test_few_requests_are_read_at_once() -> None:
    """However many threads there are: the others begin when a turn is free."""
    work, most = Work(), READERS * usable_cpus()

    async def script() -> None:
        with ThreadPoolExecutor(most + 4) as pool:
            front = threads(pool)
            all_ = [asyncio.create_task(front.answer(work.answer, SHORT, stay())) for _ in range(most + 4)]
            await begun(work, most)
            assert len(work.callers) == most
            work.may_end.set()
            assert await asyncio.gather(*all_) == [REPLY] * (most + 4)

    play(script())


def test_a_turn_ends_when_the_texts_are_cut() -> None:
    """Who only waits for passes leaves the turn to the next long body."""
    work, cpus = Work(reads_first=True), usable_cpus()

    async def script() -> None:
        with ThreadPoolExecutor(cpus + 8) as pool:
            front = threads(pool)
            long = [asyncio.create_task(front.answer(work.answer, LONG, stay())) for _ in range(cpus + 2)]
            await begun(work, cpus + 2)
            work.may_end.set()
            await asyncio.gather(*long)

    play(script())


@pytest.mark.parametrize("request_", [SHORT, LONG], ids=["short", "long"])
def test_what_no_thread_begins_in_time_is_refused(request_: Request) -> None:
    """All threads are busy for longer than a caller waits: 503, with the time to come again."""
    work = Work()

    async def script() -> None:
        with ThreadPoolExecutor(1) as pool:
            busy = asyncio.create_task(threads(pool).answer(work.answer, SHORT, stay()))
            await begun(work, 1)
            with pytest.raises(Overloaded) as refused:
                await threads(pool, objective_s=0.01).answer(work.answer, request_, stay())
            assert refused.value.headers == {"retry-after": "3"}
            work.may_end.set()
            await busy
            assert len(work.callers) == 1

    play(script())


def test_a_long_body_that_waits_too_long_for_its_turn_is_refused() -> None:
    """Others read until the caller's time is over: no thread is taken, and the turn goes to the next."""
    work, cpus = Work(), usable_cpus()

    async def script() -> None:
        with ThreadPoolExecutor(cpus + 8) as pool:
            front = threads(pool)
            reading = [asyncio.create_task(front.answer(work.answer, LONG, stay())) for _ in range(cpus)]
            await begun(work, cpus)
            front.hurry(0.01)
            with pytest.raises(Overloaded):
                await front.answer(work.answer, LONG, stay())
            front.hurry(1e6)
            work.may_end.set()
            await asyncio.gather(*reading)
            assert await front.answer(work.answer, LONG, stay()) == REPLY
            assert len(work.callers) == cpus + 1

    play(script())


def test_a_long_body_waits_no_longer_than_it_states() -> None:
    """The server would be patient, the body is not: it is refused without a thread or a turn."""
    work, cpus = Work(), usable_cpus()
    hurried = Request("POST", "/v1/predict", body=LONG.body + b'{"text": "x", "budget_ms": 10}')

    async def script() -> None:
        with ThreadPoolExecutor(cpus + 8) as pool:
            front = threads(pool)
            reading = [asyncio.create_task(front.answer(work.answer, LONG, stay())) for _ in range(cpus)]
            await begun(work, cpus)
            with pytest.raises(Overloaded):
                await front.answer(work.answer, hurried, stay())
            work.may_end.set()
            await asyncio.gather(*reading)
            assert len(work.callers) == cpus

    play(script())


def test_time_counts_from_the_last_byte() -> None:
    """What is decompressed after it came, longer than its caller waits, is refused and not begun."""
    work = Work()

    async def script() -> None:
        with ThreadPoolExecutor(1) as pool:
            front = threads(pool, objective_s=10.0)
            with pytest.raises(Overloaded):
                await front.answer(work.answer, LONG, stay(), time.monotonic() - 11.0)
        assert not work.callers

    play(script())


def test_a_caller_who_leaves_takes_no_thread() -> None:
    """Who hangs up while nobody works for them is forgotten; who hangs up later is told of to the work."""
    work = Work()

    async def script() -> None:
        with ThreadPoolExecutor(1) as pool:
            front, leave = threads(pool), asyncio.Event()
            first = asyncio.create_task(front.answer(work.answer, SHORT, leave.wait()))
            await begun(work, 1)
            with pytest.raises(CallerLeft):
                await front.answer(work.answer, SHORT, asyncio.sleep(0))
            leave.set()
            while not work.callers[0].has_left:
                await asyncio.sleep(0)
            work.may_end.set()
            with pytest.raises(CallerLeft):
                await first
            assert len(work.callers) == 1

    play(script())


@pytest.mark.parametrize(("promised_s", "late"), [(0.0, 1), (math.inf, 0), (None, 0)])
def test_answers_later_than_promised_are_counted(promised_s: float | None, late: int) -> None:
    """What is ready after the moment promised to its caller counts, whatever came after the last pass."""
    counted: list[None] = []

    def answer(request: Request) -> Reply:
        assert request.caller is not None
        request.caller.promised_s = promised_s
        return REPLY

    async def script() -> None:
        with ThreadPoolExecutor(1) as pool:
            front = Threads(pool, Limits(), lambda: 0.0, lambda: counted.append(None))
            assert await front.answer(answer, SHORT, stay()) == REPLY

    play(script())
    assert len(counted) == late


def test_what_a_thread_raises_for_who_has_left_is_nobodys() -> None:
    """The error of work that was given up is neither raised nor reported: stderr may be a pipe that fills."""
    reported: list[object] = []
    begun, may_end = threading.Semaphore(0), threading.Event()

    callers: list[Any] = []

    def fail(request: Request) -> Reply:
        callers.append(request.caller)
        begun.release()
        assert may_end.wait(PATIENCE_S)
        raise Overloaded("given up", 1.0)

    async def script() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        leave = asyncio.Event()
        with ThreadPoolExecutor(1) as pool:
            first = asyncio.create_task(threads(pool).answer(fail, SHORT, leave.wait()))
            assert await asyncio.to_thread(begun.acquire, timeout=PATIENCE_S)
            leave.set()
            while not callers[0].has_left:
                await asyncio.sleep(0)
            may_end.set()
            with pytest.raises(CallerLeft):
                await first
        del first
        gc.collect()

    play(script())
    assert reported == []
