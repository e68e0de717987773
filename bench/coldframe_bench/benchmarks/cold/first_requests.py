"""First requests for a fresh process: texts whose answer source is known, in events of an HTTP API."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coldframe.errors import ColdframeError
from coldframe_bench.benchmarks.cold.series import PROGRAMS, Series
from coldframe_bench.data.texts import sentences
from coldframe_bench.loader.samples import SampleFailed, take
from coldframe_local.paths import ROOT, models, python_path


class NoSuchText(ColdframeError):
    """The bundle gives no answer of the kind that is to be measured."""


@dataclass(frozen=True)
class Subject:
    """Subject of a measurement. root: the tree whose code runs; in tests a changed copy."""

    model_dir: Path
    root: Path = ROOT

    def environ(self) -> dict[str, str]:
        """Environment of a sample's process: the measured tree first, no settings of the caller.

        Byte code may be written, whatever the caller's shell says: an image has it, too.
        """
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("COLDFRAME_", "PYTHON"))
        }
        return kept | {
            "COLDFRAME_MODEL_DIR": str(self.model_dir.resolve()),
            "COLDFRAME_MODELS": models(),
            "COLDFRAME_LOG_LEVEL": "off",
            "ORT_DISABLE_TELEMETRY": "1",
            "PYTHONPATH": python_path(self.root),
        }


@dataclass(frozen=True)
class Chosen:
    """Two of our sentences. sure: the estimator answers it alone. unsure: the encoder runs."""

    sure: str
    unsure: str

    def text(self, series: Series) -> str:
        """The text that a series sends."""
        return self.sure if series.source == "estimator" else self.unsure


def choose_texts(subject: Subject) -> Chosen:
    """Asks the function, in a process of its own, which of our sentences the estimator answers alone."""
    texts = sorted(sentences(), key=len)
    program = PROGRAMS[Series.ENCODER].source(event_of({"texts": texts}), traced=False)
    answer = take(program, False, subject.environ(), subject.root).answer
    predictions = json.loads(answer["body"])["predictions"]
    sources = [prediction["heads"]["auto"]["by"] for prediction in predictions]
    sure, unsure = (
        [text for text, by in zip(texts, sources, strict=True) if by == series.source]
        for series in (Series.ESTIMATOR, Series.ENCODER)
    )
    if not sure or not unsure:
        missing = "unsure" if sure else "sure"
        raise NoSuchText(
            "bench/coldframe_bench/data/sentences.txt has no text that makes the estimator of"
            f" {subject.model_dir} {missing}. Train the model on more rows."
        )
    return Chosen(sure[len(sure) // 2], unsure[len(unsure) // 2])


def event_of(request: Mapping[str, object]) -> dict[str, Any]:
    """A recorded event of an HTTP API, with another body."""
    event: dict[str, Any] = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
    return event | {"body": json.dumps(request)}


def answer_source(series: Series, answer: Mapping[str, Any], start: str = "cold") -> str:
    """Source of an answer. Raises SampleFailed where the series expects another, or another kind of start."""
    if answer.get("statusCode") != 200:
        raise SampleFailed(f"{series}: an answer has status {answer.get('statusCode')}, expected 200.")
    body = json.loads(answer["body"])
    (head,) = body["predictions"][0]["heads"].values()
    if head["by"] != series.source or body["start"] != start:
        raise SampleFailed(
            f"{series}: the answer is by the {head['by']} and {body['start']},"
            f" expected {series.source} and {start}."
        )
    return str(head["by"])
