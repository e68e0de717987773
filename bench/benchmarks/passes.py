"""A request's processors: threads inside each pass, or passes at once, beside one processor, in one run.

Each request is encoded in every way in turn, in an order drawn anew for each. Time is the wall's.
"""

import os
import random
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from bench.benchmarks.batching import Mix, make_mixes
from bench.data.mixes import load_corpus
from coldframe.config import Settings
from coldframe.cpus import usable_cpus
from coldframe.model.bundle import load_pair
from coldframe.model.files import encoder_folder
from coldframe.model.model import TextEncoder, load_encoder
from coldframe.model.tokenizer import TextWindows
from coldframe.progress import Progress
from coldframe.timing import NO_DEADLINE, MovingAverage
from local.paths import default_model

_ONE = "one"

Times = dict[str, list[float]]
"""Seconds of each request, by the way it was encoded."""


def run(model_dir: Path, requests: int, seed: int) -> None:
    """Prints one table. requests: of each mix."""
    _, built = load_pair(model_dir, default_model())
    folder = encoder_folder(model_dir, built.name)
    windows = TextWindows(folder, built.facts)
    processors = usable_cpus()

    def load(threads: int, passes: int) -> TextEncoder:
        settings = Settings(model_dir=model_dir, threads=threads, passes=passes)
        return load_encoder(settings, folder, built.facts, windows, MovingAverage(0.1))

    encoders = {
        _ONE: load(1, 1),
        f"`COLDFRAME_THREADS={processors}`": load(processors, 1),
        f"`COLDFRAME_PASSES={processors}`": load(1, processors),
    }
    corpus = load_corpus(seed)
    others = [way for way in encoders if way != _ONE]
    print("| mix | one processor, ms | " + " | ".join(f"{way}, times as long" for way in others) + " |")
    print("|" + "---|" * (2 + len(others)))
    for mix in make_mixes(corpus, windows, requests):
        times = measure(encoders, mix, random.Random(seed))
        shares = [
            statistics.median(mine / one for mine, one in zip(times[way], times[_ONE], strict=True))
            for way in others
        ]
        cells = " | ".join(f"{share:.2f}" for share in shares)
        print(f"| {mix.name} | {statistics.median(times[_ONE]) * 1e3:.0f} | {cells} |")
    print(
        f"\n{corpus.source}. {processors} processors, {requests} requests of each mix, medians,"
        f" load average {os.getloadavg()[0]:.1f}."
    )


def measure(encoders: Mapping[str, TextEncoder], mix: Mix, source: random.Random) -> Times:
    """Seconds of every request in every way."""
    times: Times = {way: [] for way in encoders}
    for rows in Progress(mix.requests, desc=mix.name, unit="request"):
        for way in source.sample(list(encoders), len(encoders)):
            started_s = time.perf_counter()
            encoders[way].embed([[row] for row in rows], NO_DEADLINE)
            times[way].append(time.perf_counter() - started_s)
    return times
