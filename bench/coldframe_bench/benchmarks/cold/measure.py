"""Cold starts: fresh processes to their first answer, beside a floor taken in the same run.

Series take turns, so that a noisy machine is noisy for all of them. This process imports
neither numpy nor onnxruntime: what it has mapped could not be dropped from the page cache.
"""

import asyncio
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from coldframe.progress import Progress
from coldframe_bench.benchmarks.cold.first_requests import (
    Chosen,
    Subject,
    answer_source,
    choose_texts,
    event_of,
)
from coldframe_bench.benchmarks.cold.series import ANSWERED, CHECKED, ORDERS, PROGRAMS, THROUGH_CLIENT, Series
from coldframe_bench.loader.runtime_client import take_through_client
from coldframe_bench.loader.samples import Taken, take
from coldframe_bench.records.raw_files import DROPPED, WARM, Cold, RawFile
from coldframe_bench.targets.machine import describe_run
from coldframe_local.paths import ROOT


@dataclass(frozen=True)
class ColdOptions:
    """root: the tree whose `functions` and `coldframe` are measured; another one than ours in tests."""

    model_dir: Path
    samples: int
    seed: int
    out: Path
    checked_only: bool = False
    root: Path = ROOT

    @property
    def subject(self) -> Subject:
        """Model and tree."""
        return Subject(self.model_dir, self.root)


def run(options: ColdOptions) -> Path:
    """Takes all samples and returns the raw file."""
    sampler = _Sampler(options.subject, choose_texts(options.subject), options.checked_only)
    facts = {"samples": options.samples, "texts": asdict(sampler.chosen)}
    with RawFile(options.out, describe_run("cold", options.model_dir, options.seed, facts)) as raw:
        for number in Progress(range(options.samples), desc="cold starts", unit="round"):
            for sample in sampler.round(number):
                raw.write(sample)
        # After the others: files dropped for one series would be read by the next one.
        dropped = 0 if options.checked_only or not hasattr(os, "posix_fadvise") else options.samples
        for number in Progress(range(dropped), desc="page cache dropped", unit="round"):
            for sample in sampler.dropped_round(number):
                raw.write(sample)
    return options.out


def one_sample(subject: Subject, series: Series) -> Cold:
    """One untraced sample, for other benchmarks to set beside theirs."""
    return _sampler_of(subject).sample(series, 0)


@cache
def _sampler_of(subject: Subject) -> "_Sampler":
    return _Sampler(subject, choose_texts(subject), checked_only=True)


class _Sampler:
    """Takes rounds of samples; the first, uncounted ones fill the page cache and write .pyc files."""

    def __init__(self, subject: Subject, chosen: Chosen, checked_only: bool) -> None:
        self.chosen = chosen
        self._root = subject.root
        self._environ = subject.environ()
        self._series = [series for series in PROGRAMS if series in CHECKED or not checked_only]
        self._through_client = () if checked_only else THROUGH_CLIENT
        self._orders = () if checked_only else ORDERS
        first = [self._take(series, False, files=True) for series in self._series]
        model = [str(path) for path in subject.model_dir.rglob("*") if path.is_file()]
        self._files = sorted({name for sample in first for name in sample.files} | set(model))

    def round(self, number: int) -> list[Cold]:
        """One sample of every series."""
        samples = [self.sample(series, number) for series in self._series]
        samples += [self.sample(series, number, traced=True) for series in ANSWERED]
        samples += [self._client_sample(series, number) for series in self._through_client]
        return samples + [self._sample_of_two(series, number) for series in self._orders]

    def dropped_round(self, number: int) -> list[Cold]:
        """One sample of every series that has a budget, from files that have to be read."""
        return [self.sample(series, number, dropped=True) for series in CHECKED]

    def sample(self, series: Series, number: int, traced: bool = False, dropped: bool = False) -> Cold:
        """One fresh process."""
        if dropped:
            _drop_pages(self._files)
        process = self._take(series, traced)
        return Cold(
            series=series,
            round=number,
            page_cache=DROPPED if dropped else WARM,
            traced=traced,
            total_ms=process.total_ms,
            stages_ms=process.stages_ms,
            imports_ms=process.imports_ms,
            calls=process.calls,
            by=answer_source(series, process.answer) if process.answer else "",
            read_bytes=process.read_bytes,
        )

    def _take(self, series: Series, traced: bool, files: bool = False) -> Taken:
        event = event_of({"text": self.chosen.text(series)})
        environ = self._environ | ({"BENCH_FILES": "1"} if files else {})
        return take(PROGRAMS[series].source(event, traced), traced, environ, self._root)

    def _client_sample(self, series: Series, number: int) -> Cold:
        event = json.dumps(event_of({"text": self.chosen.text(series)})).encode()
        init_ms, invoke_ms, payload = asyncio.run(take_through_client(event, self._environ, self._root))
        stages = {"init": init_ms, "invoke": invoke_ms}
        by = answer_source(series, json.loads(payload))
        return Cold(series, number, WARM, False, init_ms + invoke_ms, stages, by=by)

    def _sample_of_two(self, series: Series, number: int) -> Cold:
        sources = ORDERS[series]
        first, second = (event_of({"text": self.chosen.text(source)}) for source in sources)
        source = PROGRAMS[sources[0]].source_of_two(first, second)
        process = take(source, False, self._environ, self._root)
        expected = zip(sources, (process.answer, process.second), ("cold", "warm"), strict=True)
        by = ", ".join(answer_source(source, answer, start) for source, answer, start in expected)
        stages = {"first": process.total_ms, "second": process.second_ms}
        return Cold(series, number, WARM, False, sum(stages.values()), stages, by=by)


def _drop_pages(files: Iterable[str]) -> None:
    """Has the kernel drop its cached pages of these files, so that the next process reads them from storage.

    Pages that another process has mapped stay. Changed pages would stay, too, so they are written first.
    """
    os.sync()
    for name in files:
        with Path(name).open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
