"""Batching inside an invocation: one text at a time, fixed sizes and the budgeted plan, in one run.

The rows of one length of a request are encoded by every strategy in turn, in an order drawn anew
for each, so that a busy machine is busy for all of them. Time is the process's own: what others take
of the machine does not count.
"""

import os
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.data.mixes import Corpus, load_corpus
from coldframe.config import DEFAULT_BATCH_TOKENS
from coldframe.model.budget import measure_budget
from coldframe.model.bundle import load_pair
from coldframe.model.encoder import Batch, Encoder, plan_batches
from coldframe.model.files import encoder_folder
from coldframe.model.tokenizer import TextWindows, Window
from coldframe.progress import Progress
from coldframe.text import normalise
from local.paths import default_model

FIXED_SIZES = (1, 2, 4, 8, 16, 32, 64)
PLAN = "plan"
STRATEGIES = (*map(str, FIXED_SIZES), PLAN)
_HEADLINE_TOKENS = 32

Times = dict[str, list[float]]
"""Seconds of each request, by strategy."""


@dataclass(frozen=True)
class Mix:
    """Requests of one kind, as rows of token ids."""

    name: str
    requests: list[list[Window]]


def run(model_dir: Path, requests: int, budget: int | None, seed: int) -> None:
    """Prints one table. requests: of each mix. budget: tokens of a pass; None for the measured one."""
    _, built = load_pair(model_dir, default_model())
    folder = encoder_folder(model_dir, built.name)
    encoder, windows = Encoder(folder, built.facts, threads=1), TextWindows(folder, built.facts)
    corpus = load_corpus(seed)
    measured = measure_budget(encoder.encode, DEFAULT_BATCH_TOKENS)
    mixes = make_mixes(corpus, windows, requests)
    times = {mix.name: measure(encoder, mix, budget or measured, random.Random(seed)) for mix in mixes}
    print_table(mixes, times)
    print(
        f"\n{corpus.source}. Budget {budget or measured} tokens of a pass (measured here: {measured}),"
        f" {requests} requests of each mix, one thread, load average {os.getloadavg()[0]:.1f}."
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


def _parts(texts: Sequence[str], size: int, count: int) -> list[list[str]]:
    """`count` lists of `size` texts, from the beginning again when there are no more."""
    return [[texts[i % len(texts)] for i in range(part * size, (part + 1) * size)] for part in range(count)]


def fixed_batches(lengths: Sequence[int], size: int) -> list[Batch]:
    """Batches of `size` rows of one length, as far as the rows suffice."""
    return [
        batch[start : start + size]
        for batch in plan_batches(lengths, max_batch_tokens=1 << 30)
        for start in range(0, len(batch), size)
    ]


def measure(encoder: Encoder, mix: Mix, budget: int, source: random.Random) -> Times:
    """Seconds of every request by every strategy."""
    times: Times = {name: [] for name in STRATEGIES}
    for rows in Progress(mix.requests, desc=mix.name, unit="request"):
        spent_s = dict.fromkeys(STRATEGIES, 0.0)
        for length in sorted({len(row) for row in rows}):
            group = [row for row in rows if len(row) == length]
            for name, taken_s in measure_group(encoder, group, budget, source).items():
                spent_s[name] += taken_s
        for name, taken_s in spent_s.items():
            times[name].append(taken_s)
    return times


def measure_group(
    encoder: Encoder, rows: Sequence[Window], budget: int, source: random.Random
) -> dict[str, float]:
    """Seconds for rows of one length by every strategy; strategies with the same batches share one run."""
    lengths = [len(row) for row in rows]
    batches = {str(size): fixed_batches(lengths, size) for size in FIXED_SIZES}
    batches[PLAN] = plan_batches(lengths, budget)
    names = {tuple(map(tuple, batches[name])): name for name in STRATEGIES}
    taken_s = {}
    for way in source.sample(list(names), len(names)):
        started_s = time.process_time()
        for batch in way:
            encoder.encode([rows[row] for row in batch])
        taken_s[way] = time.process_time() - started_s
    return {name: taken_s[tuple(map(tuple, batches[name]))] for name in STRATEGIES}


def print_table(mixes: Sequence[Mix], times: dict[str, Times]) -> None:
    """Throughput beside one row at a time: medians over requests and, of the plan, their quartiles."""
    print("| mix | rows/s, one at a time | " + " | ".join(f"{size} rows" for size in FIXED_SIZES[1:]), end="")
    print(" | plan | quartiles | plan / best fixed |")
    print("|" + "---|" * (len(FIXED_SIZES) + 4))
    for mix in mixes:
        mix_times = times[mix.name]
        speeds = {
            name: [one / mine for one, mine in zip(mix_times["1"], spent, strict=True)]
            for name, spent in mix_times.items()
        }
        medians = {name: statistics.median(samples) for name, samples in speeds.items()}
        low, _, high = statistics.quantiles(speeds[PLAN], n=4)
        best = max((str(size) for size in FIXED_SIZES), key=lambda name: medians[name])
        beside = statistics.median(
            fixed / mine for fixed, mine in zip(mix_times[best], mix_times[PLAN], strict=True)
        )
        rate = sum(map(len, mix.requests)) / sum(mix_times["1"])
        cells = [f"{medians[str(size)]:.2f}" for size in FIXED_SIZES[1:]]
        cells += [f"**{medians[PLAN]:.2f}**", f"{low:.2f}–{high:.2f}", f"{beside:.2f} ({best} rows)"]
        print(f"| {mix.name} | {rate:.0f} | " + " | ".join(cells) + " |")
