"""Processors, threads and rows of a pass: in a batch, in a request, or in a server, each in one run.

All ways take turns, so a busy moment is one for all of them. In a batch, time is the process's own: what
others take of the machine does not count. Elsewhere it is the wall's.
"""

import json
import os
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles

from coldframe.config import DEFAULT_BATCH_TOKENS, Settings
from coldframe.cpus import usable_cpus
from coldframe.model.budget import measure_budget
from coldframe.model.bundle import EncoderFacts, load_pair
from coldframe.model.encoder import Batch, Encoder, TextEncoder, plan_batches
from coldframe.model.files import encoder_folder
from coldframe.model.model import load_encoder
from coldframe.model.tokenizer import TextWindows, Window, normalise
from coldframe.progress import Progress
from coldframe.timing import NO_DEADLINE, MovingAverage
from coldframe_bench.data.mixes import Corpus, load_corpus
from coldframe_bench.loader.open_loop import Load, send_closed
from coldframe_bench.records.tables import Row, table
from coldframe_bench.targets.peers import own_server
from coldframe_bench.targets.serving import ServerFailed, serve
from coldframe_local.paths import default_model

FIXED_SIZES = (1, 2, 4, 8, 16, 32, 64)
PLAN = "plan"
STRATEGIES = (*map(str, FIXED_SIZES), PLAN)
_HEADLINE_TOKENS = 32
_ONE = "one"
_MANY_AT_ONCE = 64  # texts of a request to a server

_SETTINGS = ("WORKERS", "THREADS", "REQUEST_THREADS", "TOKENIZER_THREADS")
SHAPES = {
    "1 × 1": (1, 1, 128, 1),
    "2 × 1": (2, 1, 128, 1),
    "1 × 2": (1, 2, 128, 1),
    "4 × 1": (4, 1, 128, 1),
    "2 × 2": (2, 2, 128, 1),
    "2 × 1, 16 request threads": (2, 1, 16, 1),
    "2 × 1, 512 request threads": (2, 1, 512, 1),
    "2 × 1, 2 of the tokenizer": (2, 1, 128, 2),
}
"""Workers and threads of a pass of each server, its request threads, and threads of its tokenizer."""

Times = dict[str, list[float]]
"""Seconds of each request, by the way it was encoded."""


@dataclass(frozen=True)
class Mix:
    """Requests of one kind, as rows of token ids."""

    name: str
    requests: list[list[Window]]


def in_batches(model_dir: Path, requests: int, budget: int | None, seed: int) -> None:
    """Prints throughput beside one row at a time: medians over requests and, of the plan, their quartiles.

    requests: of each mix. budget: tokens of a pass; None for the measured one.
    """
    (folder, facts, windows), corpus = _encoder(model_dir), load_corpus(seed)
    encoder = Encoder(folder, facts, threads=1)
    measured = measure_budget(encoder.encode, DEFAULT_BATCH_TOKENS)
    mixes = make_mixes(corpus, windows, requests)
    rows = [_batch_row(mix, measure(encoder, mix, budget or measured, random.Random(seed))) for mix in mixes]
    sizes = (f"{size} rows" for size in FIXED_SIZES[1:])
    print(table(("mix", "rows/s, one at a time", *sizes, PLAN, "quartiles", "plan / best fixed"), rows))
    print(
        f"{corpus.source}. Budget {budget or measured} tokens of a pass (measured here: {measured}),"
        f" {requests} requests of each mix, one thread, load average {os.getloadavg()[0]:.1f}."
    )


def in_requests(model_dir: Path, requests: int, seed: int) -> None:
    """Prints threads inside each pass and passes at once, beside one processor. requests: of each mix."""
    (folder, facts, windows), corpus = _encoder(model_dir), load_corpus(seed)
    processors = usable_cpus()

    def load(threads: int, passes: int) -> TextEncoder:
        settings = Settings(model_dir=model_dir, threads=threads, passes=passes)
        return load_encoder(settings, folder, facts, windows, MovingAverage(0.1))

    encoders = {
        _ONE: load(1, 1),
        f"`COLDFRAME_THREADS={processors}`": load(processors, 1),
        f"`COLDFRAME_PASSES={processors}`": load(1, processors),
    }
    others = [way for way in encoders if way != _ONE]
    rows: list[Row] = []
    for mix in make_mixes(corpus, windows, requests):
        times: Times = {way: [] for way in encoders}
        source = random.Random(seed)
        for request in Progress(mix.requests, desc=mix.name, unit="request"):
            for way in source.sample(list(encoders), len(encoders)):
                started_s = time.perf_counter()
                encoders[way].embed([[row] for row in request], NO_DEADLINE)
                times[way].append(time.perf_counter() - started_s)
        shares = (f"{_ratio(times[way], times[_ONE]):.2f}" for way in others)
        rows.append((mix.name, f"{median(times[_ONE]) * 1e3:.0f}", *shares))
    print(table(("mix", "one processor, ms", *(f"{way}, times as long" for way in others)), rows))
    print(
        f"{corpus.source}. {processors} processors, {requests} requests of each mix, medians,"
        f" load average {os.getloadavg()[0]:.1f}."
    )


def in_servers(model_dir: Path, seconds: float, turns: int, seed: int) -> None:
    """Prints passes at once and threads of one pass, over HTTP. seconds: of each turn of each shape and mix.

    Closed loop: each connection has one request at a time. It shows the most that a server can do, and no
    latency that a user would see.
    """
    corpus = load_corpus(seed)
    mixes = _bodies(corpus)
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    latencies_ms: dict[tuple[str, str], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        servers = {}
        for shape, values in SHAPES.items():
            environ = {f"COLDFRAME_{name}": str(value) for name, value in zip(_SETTINGS, values, strict=True)}
            servers[shape] = own_server(shape, model_dir, environ | {"COLDFRAME_OBJECTIVE_MS": "600000"})
            stack.enter_context(serve(servers[shape], "a text"))
        order = [(mix, shape) for _ in range(turns) for mix in mixes for shape in SHAPES]
        for turn in Progress(order, unit="turn"):
            mix, shape = turn
            started_s = time.perf_counter()
            bodies = _until(started_s + seconds, mixes[mix])
            load = Load(shape, servers[shape].url, 0.0, (), bodies, timeout_s=60.0)
            records = send_closed(load, 8 if mix.startswith("64") else 64).records
            rates[turn].append(len(records) / (time.perf_counter() - started_s))
            latencies_ms[turn] += [record.latency_ms for record in records]
            if wrong := {record.status for record in records} - {200}:
                raise ServerFailed(f"A server answered {min(wrong)}, expected 200. Look at its log.")
    rows: list[Row] = []
    for mix in mixes:
        for shape in SHAPES:
            cuts = quantiles(latencies_ms[mix, shape], n=100)
            to_first = _ratio(rates[mix, shape], rates[mix, next(iter(SHAPES))])
            figures = (f"{median(rates[mix, shape]):.0f}", f"{to_first:.2f}")
            rows.append((mix, shape, *figures, f"{cuts[49]:.1f}", f"{cuts[98]:.1f}"))
    print(table("mix | workers × threads | requests/s | to the first | p50 ms | p99 ms", rows))
    print(
        f"Workers × threads of a pass; requests a second, medians of {turns} turns of {seconds:g} s, and"
        f" medians of ratios to the first shape. {corpus.source}, the loader on"
        f" this machine too, {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}."
    )


def make_mixes(corpus: Corpus, windows: TextWindows, requests: int) -> list[Mix]:
    """The mixes; a headline has at most 32 tokens."""
    headlines = [text for text in corpus.headlines if len(windows.cut([text])[0][0]) <= _HEADLINE_TOKENS]
    longest = sorted(corpus.posts, key=len)[-requests:]

    def mix(name: str, texts: list[list[str]]) -> Mix:
        cut = [windows.cut([normalise(text) for text in request]) for request in texts]
        return Mix(name, [[row for rows in request for row in rows] for request in cut])

    return [
        mix("posts, 64 a request", _parts(corpus.posts, 64, requests)),
        mix("headlines, 128 a request", _parts(headlines, 128, requests)),
        mix("headlines, 1,000 a request", _parts(headlines, 1000, max(2, requests // 4))),
        mix(
            "one long text, 63 headlines",
            [[long, *short] for long, short in zip(longest, _parts(headlines, 63, requests), strict=True)],
        ),
    ]


def fixed_batches(lengths: Sequence[int], size: int) -> list[Batch]:
    """Batches of `size` rows of one length, as far as the rows suffice."""
    return [
        batch[start : start + size]
        for batch in plan_batches(lengths, max_batch_tokens=1 << 30)
        for start in range(0, len(batch), size)
    ]


def measure(encoder: Encoder, mix: Mix, budget: int, source: random.Random) -> Times:
    """Seconds of every request by every strategy. A batch of several strategies is encoded once for all."""
    times: Times = {name: [] for name in STRATEGIES}
    for rows in Progress(mix.requests, desc=mix.name, unit="request"):
        lengths = [len(row) for row in rows]
        plans = {str(size): fixed_batches(lengths, size) for size in FIXED_SIZES}
        plans[PLAN] = plan_batches(lengths, budget)
        batches = sorted({tuple(batch) for plan in plans.values() for batch in plan})
        taken_s: dict[tuple[int, ...], float] = {}
        for batch in source.sample(batches, len(batches)):
            started_s = time.process_time()
            encoder.encode([rows[row] for row in batch])
            taken_s[batch] = time.process_time() - started_s
        for name, plan in plans.items():
            times[name].append(sum(taken_s[tuple(batch)] for batch in plan))
    return times


def _batch_row(mix: Mix, times: Times) -> Row:
    speeds = {name: _ratios(times["1"], own) for name, own in times.items()}
    medians = {name: median(samples) for name, samples in speeds.items()}
    low, _, high = quantiles(speeds[PLAN], n=4)
    best = max((str(size) for size in FIXED_SIZES), key=lambda name: medians[name])
    return (
        mix.name,
        f"{sum(map(len, mix.requests)) / sum(times['1']):.0f}",
        *(f"{medians[str(size)]:.2f}" for size in FIXED_SIZES[1:]),
        f"**{medians[PLAN]:.2f}**",
        f"{low:.2f}–{high:.2f}",
        f"{_ratio(times[best], times[PLAN]):.2f} ({best} rows)",
    )


def _bodies(corpus: Corpus) -> dict[str, list[bytes]]:
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


def _encoder(model_dir: Path) -> tuple[Path, EncoderFacts, TextWindows]:
    _, built = load_pair(model_dir, default_model())
    folder = encoder_folder(model_dir, built.name)
    return folder, built.facts, TextWindows(folder, built.facts)


def _parts(texts: Sequence[str], size: int, count: int) -> list[list[str]]:
    """`count` lists of `size` texts, from the beginning again when there are no more."""
    return [[texts[i % len(texts)] for i in range(part * size, (part + 1) * size)] for part in range(count)]


def _until(ends_s: float, bodies: Sequence[bytes]) -> Iterator[bytes]:
    """Bodies, from the beginning again, until a moment."""
    for body in cycle(bodies):
        if time.perf_counter() >= ends_s:
            return
        yield body


def _ratios(values: Sequence[float], base: Sequence[float]) -> list[float]:
    return [value / other for value, other in zip(values, base, strict=True)]


def _ratio(values: Sequence[float], base: Sequence[float]) -> float:
    """The median of ratios, turn by turn."""
    return median(_ratios(values, base))
