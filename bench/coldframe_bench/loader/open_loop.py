"""The loader: sends each request when it is due, and takes its latency from then.

A slow target is sent no fewer requests, and the time that a request waits to be sent is part of its latency
(wrk2; MLPerf LoadGen's `scheduled_time`).
"""

import asyncio
import gc
import selectors
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from coldframe_bench.loader.http_client import HttpClient, NoAnswer
from coldframe_bench.records.raw_files import Answer

TIMEOUT = "timeout"


@dataclass(frozen=True)
class Load:
    """Plan of a run: one body for each time that a request is due, in seconds from the start."""

    target: str
    url: str
    offered_rps: float
    due_s: Sequence[float]
    bodies: Iterable[bytes]
    timeout_s: float = 10.0
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})


@dataclass(frozen=True)
class Answered:
    """Answers of a run: one record and one body per request, in the order due."""

    records: list[Answer]
    bodies: list[bytes]


def send(load: Load) -> Answered:
    """Sends all requests and waits for the last answer. No error of the target ends the run."""
    with asyncio.Runner(loop_factory=_precise_loop) as runner, _no_collections():
        return runner.run(_send(load))


def send_closed(load: Load, concurrency: int) -> Answered:
    """Sends the next request when one of `concurrency` has been answered; `load.due_s` is not looked at.

    For throughput at full load and for one caller after another; its latency is from the sending.
    """
    with asyncio.Runner(loop_factory=_precise_loop) as runner, _no_collections():
        return runner.run(_send_closed(load, concurrency))


async def _send_closed(load: Load, concurrency: int) -> Answered:
    client = HttpClient(load.url, load.headers)
    start = time.perf_counter()
    waiting = iter(enumerate(load.bodies))
    answers: dict[int, tuple[Answer, bytes]] = {}

    async def caller() -> None:
        for number, body in waiting:
            answers[number] = await _ask(client, load, start, time.perf_counter() - start, body)

    await asyncio.gather(*(caller() for _ in range(concurrency)))
    client.close()
    in_order = [answers[number] for number in sorted(answers)]
    return Answered([record for record, _ in in_order], [body for _, body in in_order])


async def _send(load: Load) -> Answered:
    client = HttpClient(load.url, load.headers)
    start = time.perf_counter()
    tasks = []
    for due_s, body in zip(load.due_s, load.bodies, strict=True):
        if (left := start + due_s - time.perf_counter()) > 0:
            await asyncio.sleep(left)
        tasks.append(asyncio.create_task(_ask(client, load, start, due_s, body)))
    answers = await asyncio.gather(*tasks)
    client.close()
    return Answered([record for record, _ in answers], [body for _, body in answers])


async def _ask(
    client: HttpClient, load: Load, start: float, due_s: float, body: bytes
) -> tuple[Answer, bytes]:
    sent_s = time.perf_counter() - start
    status, answer, error = 0, b"", ""
    try:
        async with asyncio.timeout(load.timeout_s):
            status, answer = await client.post(body)
    except TimeoutError:
        error = TIMEOUT
    except (NoAnswer, OSError) as exc:
        error = type(exc).__name__
    latency_ms = (time.perf_counter() - start - due_s) * 1e3
    record = Answer(load.target, load.offered_rps, due_s, sent_s, latency_ms, status, error)
    return record.rounded(), answer


def _precise_loop() -> asyncio.AbstractEventLoop:
    """On select(), whose timer has microseconds; those of epoll and uvloop have milliseconds."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


@contextmanager
def _no_collections() -> Iterator[None]:
    """Without garbage collection, whose pauses would be taken for the target's."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
