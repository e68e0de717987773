"""Tokens per second inside one process: passes alone, tokenizing alone, texts to embeddings, and heads."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import cycle, takewhile
from typing import TypeVar

from coldframe.model.encoder import RowEncoder
from coldframe.model.tokenizer import TextWindows, Window
from coldframe_bench.benchmarks.gpu.device import Watched, watch

T = TypeVar("T")
R = TypeVar("R")
Pass = list[Window]

ARRIVAL, SORTED = "arrival", "sorted"
CHUNK = 128  # texts that a thread cuts at once
_WARM_UP = 3  # passes that are not counted: kernels are loaded, memory is taken


@dataclass(frozen=True)
class Measured:
    """Work of a run, and its times. pass_ms: time of each pass from its start to its embeddings."""

    tokens: int
    seconds: float
    pass_ms: list[float]
    watched: Watched

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.seconds


def measure(threads: int, seconds: float, step: Callable[[], int]) -> Measured:
    """Takes steps in `threads` at once for about `seconds`. A step returns its tokens, or its rows."""
    pass_ms: list[float] = []
    tokens = [0] * threads

    def drive(thread: int) -> None:
        while (started := time.perf_counter()) < ends:
            tokens[thread] += step()
            pass_ms.append((time.perf_counter() - started) * 1e3)

    with watch() as watched, ThreadPoolExecutor(threads) as pool:
        start_s = time.perf_counter()
        ends = start_s + seconds
        list(pool.map(drive, range(threads)))
        spent_s = time.perf_counter() - start_s
    return Measured(sum(tokens), spent_s, pass_ms, watched)


def measure_passes(encoder: RowEncoder, passes: Sequence[Pass], threads: int, seconds: float) -> Measured:
    """Encodes passes over and over."""
    for rows in passes[:_WARM_UP]:
        encoder.encode(rows)
    shared = cycle(passes)  # `next` of it is one step of the interpreter

    def encode() -> int:
        rows = next(shared)
        encoder.encode(rows)
        return sum(map(len, rows))

    return measure(threads, seconds, encode)


def measure_tokenizer(windows: TextWindows, texts: Sequence[str], threads: int, seconds: float) -> Measured:
    """Cuts texts, `CHUNK` of them in each call. The GPU does nothing."""
    windows.cut(texts[:CHUNK])
    chunks = cycle(_chunks(texts))
    cut = measure(
        threads, seconds, lambda: sum(len(row) for text in windows.cut(next(chunks)) for row in text)
    )
    return replace(cut, pass_ms=[], watched=Watched())


def measure_texts(
    windows: TextWindows,
    encoder: RowEncoder,
    texts: Sequence[str],
    pass_tokens: int,
    tokenizer_threads: int,
    encoder_threads: int,
    seconds: float,
) -> Measured:
    """Texts to embeddings: some threads cut them, others encode passes of what is cut, in order."""
    pass_ms: list[float] = []

    def encode(rows: Pass) -> int:
        started = time.perf_counter()
        encoder.encode(rows)
        pass_ms.append((time.perf_counter() - started) * 1e3)
        return sum(map(len, rows))

    with (
        watch() as watched,
        ThreadPoolExecutor(tokenizer_threads) as cutters,
        ThreadPoolExecutor(encoder_threads) as drivers,
    ):
        start_s = time.perf_counter()
        chunks = takewhile(lambda _: time.perf_counter() < start_s + seconds, cycle(_chunks(texts)))
        cut = _ahead(cutters, windows.cut, chunks, 2 * tokenizer_threads)
        passes = _fill((row for chunk in cut for text in chunk for row in text), pass_tokens)
        tokens = sum(_ahead(drivers, encode, passes, 2 * encoder_threads))
        spent_s = time.perf_counter() - start_s
    return Measured(tokens, spent_s, pass_ms, watched)


def make_passes(rows: Sequence[Window], order: str, tokens: int) -> list[Pass]:
    """Passes of about `tokens` tokens each, padding not counted.

    order: ARRIVAL, as a scheduler takes rows of many requests; SORTED by length, as inside one request.
    """
    return list(_fill(sorted(rows, key=len) if order == SORTED else rows, tokens))


def _chunks(texts: Sequence[str]) -> list[Sequence[str]]:
    return [texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK)]


def _ahead(
    pool: ThreadPoolExecutor, function: Callable[[T], R], items: Iterable[T], most: int
) -> Iterator[R]:
    """The function's results in the order of the items, of which at most `most` are in work or waiting."""
    waiting: deque[Future[R]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) >= most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _fill(rows: Iterable[Window], tokens: int) -> Iterator[Pass]:
    """Passes of at most `tokens` tokens; a longer row is a pass of its own."""
    filling: Pass = []
    filled = 0
    for row in rows:
        if filling and filled + len(row) > tokens:
            yield filling
            filling, filled = [], 0
        filling.append(row)
        filled += len(row)
    if filling:
        yield filling
