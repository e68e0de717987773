"""Every policy on every mix at every load, in one run."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from coldframe.capacity.arrivals import poisson
from coldframe.cpus import usable_cpus
from coldframe.model.bundle import load_pair
from coldframe.model.encoder import Encoder
from coldframe.model.files import encoder_folder
from coldframe.model.tokenizer import TextWindows, Window, normalise
from coldframe.progress import Progress
from coldframe.scheduling.limits import Limits
from coldframe.scheduling.pass_times import PassTimes
from coldframe.scheduling.scheduler import Scheduler
from coldframe.serving.calibration import calibrate
from coldframe.serving.driver import PassQueue
from coldframe_bench.benchmarks.serve.in_process import Played, play
from coldframe_bench.benchmarks.serve.mixes import BOTH, HEADLINES, POSTS, ServeOptions, TextMix, make_mixes
from coldframe_bench.benchmarks.serve.over_http import measure_over_http
from coldframe_bench.benchmarks.serve.policies import FixedDelay
from coldframe_bench.data.mixes import load_corpus
from coldframe_bench.records.raw_files import Fact, RawFile
from coldframe_bench.targets.machine import describe_run
from coldframe_local.paths import default_model

OURS = "EDF + AIMD"
DELAY = "fixed delay"
ALONE = "none"
POLICIES = (OURS, DELAY, ALONE)
LOADS = (0.5, 0.8, 1.0, 1.5)
CAPACITY_RPS, TOKENS_PER_S = "capacity_rps", "tokens_per_s"

_DELAY_S, _BATCH_ROWS = 0.005, 32
_CAPACITY_RPS = {HEADLINES: 500, POSTS: 25, BOTH: 80}  # about; for how many requests capacity is measured
_NO_DEADLINE_S = 1e6


def run(options: ServeOptions) -> Path:
    """Measures the capacity of each mix, then every policy at shares of it; returns the raw file."""
    corpus = load_corpus(options.seed)
    names = ("workers", "seconds", "rounds", "deadline_ms", "peers")
    facts: dict[str, object] = {name: getattr(options, name) for name in names}
    facts |= {"source": corpus.source, "delay_ms": _DELAY_S * 1e3, "batch_rows": _BATCH_ROWS}
    with RawFile(options.out, describe_run("serve", options.model_dir, options.seed, facts)) as raw:
        comparison = _Comparison(options, raw)
        mixes = make_mixes(corpus, options.seed)
        for mix in mixes:
            comparison.measure(mix)
        if options.peers:
            measure_over_http(options, raw, mixes)
    return options.out


class _Comparison:
    """The policies, each with the same encoder, requests and moments."""

    def __init__(self, options: ServeOptions, raw: RawFile) -> None:
        self._options = options
        self._raw = raw
        _, built = load_pair(options.model_dir, default_model())
        folder = encoder_folder(options.model_dir, built.name)
        self._encoder = Encoder(folder, built.facts, threads=1)
        self._windows = TextWindows(folder, built.facts)
        self._limits = Limits(workers=options.workers or usable_cpus(), max_queue_rows=1 << 20)
        self._times = PassTimes()
        calibrate(self._times, self._encoder.encode, self._limits, time.perf_counter)
        self._policies: Mapping[str, Callable[[], PassQueue]] = {
            OURS: lambda: Scheduler(self._limits, {"encoder": self._times}),
            DELAY: lambda: FixedDelay(self._limits, _DELAY_S, _BATCH_ROWS),
            ALONE: lambda: FixedDelay(self._limits, 0.0, 1),
        }

    def measure(self, mix: TextMix) -> None:
        """All policies at all rates, which are shares of what ours answers when all is there at once."""
        capacity_rps = self._capacity_rps(mix)
        self._raw.write(Fact(CAPACITY_RPS, mix.name, capacity_rps))
        turns = [(number, load) for number in range(self._options.rounds) for load in LOADS]
        for number, load in Progress(turns, desc=mix.name, unit="rate"):
            rate_rps = load * capacity_rps
            count = max(20, round(rate_rps * self._options.seconds))
            due_s = poisson(rate_rps, count, self._options.seed + number)
            requests = self._cut(mix, count)
            for shift in range(len(POLICIES)):
                policy = POLICIES[(number + shift) % len(POLICIES)]
                target = target_of(mix.name, policy)
                played = self._play(policy, target, requests, due_s, rate_rps)
                self._raw.write(*played.answers)
                subject = f"{target} at {rate_rps:g} rps"
                self._raw.write(Fact(TOKENS_PER_S, subject, played.tokens_per_s))

    def _capacity_rps(self, mix: TextMix) -> float:
        """Requests a second where all of them are there from the beginning, at the second attempt."""
        count = max(20, round(_CAPACITY_RPS[mix.name] * self._options.seconds))
        requests = self._cut(mix, count)
        for _ in range(2):
            played = self._play(OURS, "capacity", requests, [0.0] * count, 0.0)
        return count / played.seconds

    def _play(
        self, policy: str, target: str, requests: list[list[Window]], due_s: list[float], rate_rps: float
    ) -> Played:
        deadline_s = self._options.deadline_ms / 1e3 if rate_rps else _NO_DEADLINE_S
        return play(target, self._policies[policy](), self._encoder, requests, due_s, rate_rps, deadline_s)

    def _cut(self, mix: TextMix, count: int) -> list[list[Window]]:
        return self._windows.cut([normalise(text) for text in mix.take(count)])


def target_of(mix: str, policy: str) -> str:
    """The name of a policy's answers in the raw file."""
    return f"{mix}: {policy}"
