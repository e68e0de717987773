"""The server's processors: passes at once against threads of one pass, over HTTP, in one run.

Servers of every shape are there from the start and take turns, so that a busy moment is one for all of them.
Closed loop: each connection has one request at a time, 64 of one text or 8 of many. It shows what a server
can do at most, and no latency that a user would see.
"""

import asyncio
import json
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from bench.data.mixes import Corpus, load_corpus
from bench.loader.http_client import HttpClient
from bench.targets.server_processes import server_process
from coldframe.progress import Progress

CONNECTIONS, CONNECTIONS_OF_MANY = 64, 8
_MANY_AT_ONCE = 64  # texts of a request


@dataclass(frozen=True)
class Shape:
    """How a server shares out its processors."""

    workers: int
    threads: int
    request_threads: int = 128
    tokenizer_threads: int = 1

    @property
    def environ(self) -> Mapping[str, str]:
        """As its settings."""
        return {
            "COLDFRAME_WORKERS": str(self.workers),
            "COLDFRAME_THREADS": str(self.threads),
            "COLDFRAME_REQUEST_THREADS": str(self.request_threads),
            "COLDFRAME_TOKENIZER_THREADS": str(self.tokenizer_threads),
            "COLDFRAME_OBJECTIVE_MS": "600000",  # nothing is refused
        }

    def __str__(self) -> str:
        said = f"{self.workers} × {self.threads}"
        if self.request_threads != 128:
            said += f", {self.request_threads} request threads"
        return said + (f", {self.tokenizer_threads} of the tokenizer" if self.tokenizer_threads > 1 else "")


@dataclass
class Turns:
    """Requests a second of one shape with one mix, turn by turn, and the latencies of all turns."""

    rates: list[float] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)


SHAPES = (
    Shape(1, 1),
    Shape(2, 1),
    Shape(1, 2),
    Shape(4, 1),
    Shape(2, 2),
    Shape(2, 1, request_threads=16),
    Shape(2, 1, request_threads=512),
    Shape(2, 1, tokenizer_threads=2),
)


def run(model_dir: Path, seconds: float, turns: int, seed: int, shapes: Sequence[Shape] = SHAPES) -> None:
    """Prints one table. seconds: of each turn of each shape with each mix."""
    corpus = load_corpus(seed)
    mixes = make_mixes(corpus)
    results = {(mix, shape): Turns() for mix in mixes for shape in shapes}
    with ExitStack() as stack:
        addresses = {shape: stack.enter_context(server_process(model_dir, shape.environ)) for shape in shapes}
        order = [(mix, shape) for _ in range(turns) for mix in mixes for shape in shapes]
        for mix, shape in Progress(order, unit="turn"):
            connections = CONNECTIONS_OF_MANY if mix.startswith("64") else CONNECTIONS
            turn = take_turn(addresses[shape], mixes[mix], connections, seconds, results[mix, shape])
            asyncio.run(turn)
    print_table(mixes, shapes, results)
    print(
        f"\nWorkers × threads of a pass; requests a second, medians of {turns} turns of {seconds:g} s, and"
        f" medians of ratios to the first shape. {corpus.source}, the loader on"
        f" this machine too, {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}."
    )


def make_mixes(corpus: Corpus) -> dict[str, list[bytes]]:
    """Bodies of requests by the name of the mix; every text is encoded but in the last two."""

    def body(**fields: object) -> bytes:
        return json.dumps({"cache": False, **fields}).encode()

    some, encoder = corpus.headlines, ["logreg"]
    many = [some[start : start + _MANY_AT_ONCE] for start in range(0, len(some), _MANY_AT_ONCE)]
    return {
        "headlines": [body(text=text, heads=encoder) for text in some],
        "posts": [body(text=text, heads=encoder) for text in corpus.posts],
        "64 headlines": [body(texts=texts, heads=encoder) for texts in many],
        # Texts beyond ASCII are the tokenizer library's.
        "64 headlines, accents": [body(texts=[f"{t} Grüße" for t in texts], heads=encoder) for texts in many],
        "headlines, `auto`": [body(text=text) for text in some],
        "headlines, cached": [json.dumps({"text": text}).encode() for text in some[:100]],
    }


async def take_turn(
    address: str, bodies: Sequence[bytes], connections: int, seconds: float, turns: Turns
) -> None:
    """Sends requests for the given time, and records them. Raises RuntimeError for an error answer."""
    client, texts = HttpClient(f"{address}/v1/predict"), cycle(bodies)
    until_s = time.perf_counter() + seconds
    done: list[float] = []

    async def ask() -> None:
        while (began_s := time.perf_counter()) < until_s:
            status, body = await client.post(next(texts))
            if status != 200:
                raise RuntimeError(f"The server answered {status}: {body.decode()}")
            done.append(time.perf_counter() - began_s)

    began_s = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(connections)))
    turns.rates.append(len(done) / (time.perf_counter() - began_s))
    turns.latencies_s += done
    client.close()


def print_table(
    mixes: Sequence[str] | Mapping[str, object],
    shapes: Sequence[Shape],
    results: Mapping[tuple[str, Shape], Turns],
) -> None:
    """A row for each mix and shape."""
    print("| mix | workers × threads | requests/s | to the first | p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|")
    for mix in mixes:
        first = results[mix, shapes[0]]
        for shape in shapes:
            turns = results[mix, shape]
            ratios = [mine / other for mine, other in zip(turns.rates, first.rates, strict=True)]
            cuts_s = statistics.quantiles(turns.latencies_s, n=100)
            print(
                f"| {mix} | {shape} | {statistics.median(turns.rates):.0f} | {statistics.median(ratios):.2f}"
                f" | {cuts_s[49] * 1e3:.1f} | {cuts_s[98] * 1e3:.1f} |"
            )
