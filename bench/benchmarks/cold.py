"""Cold starts: fresh processes to their first answer, beside a floor taken in the same run.

Series take turns, so that a noisy machine is noisy for all of them. This process imports
neither numpy nor onnxruntime: what it has mapped could not be dropped from the page cache.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tqdm import tqdm

from bench.data.texts import sentences
from bench.loader.runtime_client import take_through_client
from bench.loader.samples import Program, SampleFailed, Taken, take
from bench.reporting.records import Cold, RawFile
from bench.targets import page_cache
from bench.targets.machine import describe_run
from coldframe.errors import ColdframeError
from local.paths import ROOT, python_path

INTERPRETER = "interpreter"
FLOOR = "floor"
ESTIMATOR = "estimator"
ENCODER = "encoder"
ESTIMATOR_CLIENT = "estimator, through the runtime client"
ENCODER_CLIENT = "encoder, through the runtime client"
WEB = "encoder, through FastAPI and Mangum"

_FUNCTION = "from functions.predict.app import handler"
_WEB = "import os; from functions.predict.engine import Engine; engine = Engine(os.environ, False)"
_PROGRAMS = {
    INTERPRETER: Program(load=""),
    FLOOR: Program(load="import numpy, onnxruntime"),
    ESTIMATOR: Program(load=_FUNCTION, door="handler"),
    ENCODER: Program(load=_FUNCTION, door="handler"),
    WEB: Program(load=_WEB, door="engine.fastapi"),
}
_GIVERS = {ESTIMATOR: "estimator", ESTIMATOR_CLIENT: "estimator"}
CHECKED = (FLOOR, ESTIMATOR, ENCODER)


class NoSuchText(ColdframeError):
    """The bundle gives no answer of the kind that is to be measured."""


@dataclass(frozen=True)
class Chosen:
    """Two of our sentences. sure: the estimator answers it alone. unsure: the encoder runs."""

    sure: str
    unsure: str

    def text(self, series: str) -> str:
        """The text that a series sends."""
        return self.sure if series in _GIVERS else self.unsure


@dataclass(frozen=True)
class ColdOptions:
    """root: the tree whose `functions` and `coldframe` are measured; another one than ours in tests."""

    model_dir: Path
    samples: int
    seed: int
    out: Path
    checked_only: bool = False
    root: Path = ROOT


def run(options: ColdOptions) -> Path:
    """Takes all samples and returns the raw file."""
    sampler = _sampler(options)
    facts = {"samples": options.samples, "texts": asdict(sampler.chosen)}
    with RawFile(options.out, describe_run("cold", options.model_dir, options.seed, facts)) as raw:
        for number in tqdm(range(options.samples), desc="cold starts", unit="round"):
            for sample in sampler.round(number):
                raw.write(sample)
        # After the others: files dropped for one series would be read by the next one.
        dropped = 0 if options.checked_only or not page_cache.can_drop() else options.samples
        for number in tqdm(range(dropped), desc="page cache dropped", unit="round"):
            for sample in sampler.dropped_round(number):
                raw.write(sample)
    return options.out


def one_sample(options: ColdOptions, series: str) -> Cold:
    """One untraced sample, for other benchmarks to set beside theirs."""
    return _sampler(options).sample(series, 0)


@cache
def _sampler(options: ColdOptions) -> "_Sampler":
    return _Sampler(options, choose_texts(options))


class _Sampler:
    """Takes rounds of samples; the first, uncounted ones fill the page cache and write .pyc files."""

    def __init__(self, options: ColdOptions, chosen: Chosen) -> None:
        self._options = options
        self.chosen = chosen
        self._environ = sample_environ(options)
        self._programs = {
            name: program
            for name, program in _PROGRAMS.items()
            if name in CHECKED or not options.checked_only
        }
        first = [self._take(series, False, files=True) for series in self._programs]
        model = [str(path) for path in options.model_dir.rglob("*") if path.is_file()]
        self._files = sorted({name for taken in first for name in taken.files} | set(model))

    def round(self, number: int) -> list[Cold]:
        """One sample of every series."""
        samples = [self.sample(series, number) for series in self._programs]
        samples += [self.sample(series, number, traced=True) for series in (ESTIMATOR, ENCODER)]
        if not self._options.checked_only:
            samples += [self._client_sample(series, number) for series in (ESTIMATOR_CLIENT, ENCODER_CLIENT)]
        return samples

    def dropped_round(self, number: int) -> list[Cold]:
        """One sample of every series that has a budget, from files that have to be read."""
        return [self.sample(series, number, dropped=True) for series in CHECKED]

    def sample(self, series: str, number: int, traced: bool = False, dropped: bool = False) -> Cold:
        """One fresh process."""
        if dropped:
            page_cache.drop(self._files)
        taken = self._take(series, traced)
        return Cold(
            series=series,
            round=number,
            page_cache="dropped" if dropped else "warm",
            traced=traced,
            total_ms=taken.total_ms,
            stages_ms=taken.stages_ms,
            imports_ms=taken.imports_ms,
            calls=taken.calls,
            by=giver_of(series, taken.answer) if taken.answer else "",
            read_bytes=taken.read_bytes,
        )

    def _take(self, series: str, traced: bool, files: bool = False) -> Taken:
        event = event_of({"text": self.chosen.text(series)})
        environ = self._environ | ({"BENCH_FILES": "1"} if files else {})
        return take(self._programs[series].source(event, traced), traced, environ, self._options.root)

    def _client_sample(self, series: str, number: int) -> Cold:
        event = json.dumps(event_of({"text": self.chosen.text(series)})).encode()
        init_ms, invoke_ms, payload = asyncio.run(
            take_through_client(event, self._environ, self._options.root)
        )
        stages = {"init": init_ms, "invoke": invoke_ms}
        giver = giver_of(series, json.loads(payload))
        return Cold(series, number, "warm", False, init_ms + invoke_ms, stages, by=giver)


def sample_environ(options: ColdOptions) -> dict[str, str]:
    """What a sample's process gets: the tree measured before the one installed, no settings of the caller's.

    Byte code may be written, whatever the caller's shell says: an image has it, too.
    """
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("COLDFRAME_", "PYTHON"))
    }
    return kept | {
        "COLDFRAME_MODEL_DIR": str(options.model_dir.resolve()),
        "COLDFRAME_LOG_LEVEL": "off",
        "ORT_DISABLE_TELEMETRY": "1",
        "PYTHONPATH": python_path(options.root),
    }


def event_of(asked: Mapping[str, object]) -> dict[str, Any]:
    """A recorded event of an HTTP API, with another body."""
    event: dict[str, Any] = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
    return event | {"body": json.dumps(asked)}


def giver_of(series: str, answer: Mapping[str, Any]) -> str:
    """Who answered. Raises SampleFailed where it is not whom the series is about."""
    if answer.get("statusCode") != 200:
        raise SampleFailed(f"{series}: the first answer has status {answer.get('statusCode')}, expected 200.")
    body = json.loads(answer["body"])
    (head,) = body["predictions"][0]["heads"].values()
    expected = _GIVERS.get(series, "ensemble")
    if head["by"] != expected or body["start"] != "cold":
        raise SampleFailed(
            f"{series}: the answer is by the {head['by']} and {body['start']}, expected {expected} and cold."
        )
    return str(head["by"])


def choose_texts(options: ColdOptions) -> Chosen:
    """Asks the function, in a process of its own, which of our sentences the estimator answers alone."""
    texts = sorted(sentences(), key=len)
    source = _PROGRAMS[ENCODER].source(event_of({"texts": texts}), traced=False)
    answer = take(source, False, sample_environ(options), options.root).answer
    predictions = json.loads(answer["body"])["predictions"]
    givers = [prediction["heads"]["auto"]["by"] for prediction in predictions]
    sure, unsure = (
        [text for text, by in zip(texts, givers, strict=True) if by == giver]
        for giver in ("estimator", "ensemble")
    )
    if not sure or not unsure:
        missing = "unsure" if sure else "sure"
        raise NoSuchText(
            f"The estimator of {options.model_dir} is {missing} of none of bench/data/sentences.txt."
        )
    return Chosen(sure[len(sure) // 2], unsure[len(unsure) // 2])
