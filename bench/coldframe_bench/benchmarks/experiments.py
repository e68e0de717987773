"""Shadows: an answer's time with a second arm beside the time without, request by request in turns.

Both sides answer texts of equal length in one process, in an order that chance draws. The ratio is the median
of the pairs' times; its interval is by bootstrap.
"""

import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from coldframe.api.api import Api, Request
from coldframe.config import Settings
from coldframe.contract import PREDICT
from coldframe.experiments.control import Control
from coldframe.experiments.document import read_experiment
from coldframe.experiments.stores import FolderStore
from coldframe.model.bundle import load_manifest
from coldframe.model.files import MANIFEST
from coldframe.pipeline.models import Models, load_models
from coldframe.progress import Progress
from coldframe.timing import StartMark
from coldframe_bench.data.texts import load_texts
from coldframe_bench.records.tables import table
from coldframe_bench.targets.machine import Check
from coldframe_local.paths import default_model

_SECOND = "second-model"
_WORDS = 80
_WARM_UP = 20
_RESAMPLES = 500


@dataclass(frozen=True)
class Case:
    """One comparison. arms: of the experiment. goal: largest ratio; None where none is set."""

    title: str
    arms: list[Mapping[str, str]]
    goal: float | None


CASES = (
    Case("a head (mlp, shadow logreg)", [{"head": "mlp"}, {"head": "logreg"}], 1.02),
    Case("a model, one head (mlp)", [{"head": "mlp"}, {"head": "mlp", "model": _SECOND}], 1.05),
    Case("a model, auto", [{}, {"model": _SECOND}], 1.05),
    Case("a head for auto (logreg)", [{}, {"head": "logreg"}], None),
)


def run(check: Check) -> None:
    """Prints a row for each case. check.samples: pairs of requests."""
    texts = _texts(check.samples + _WARM_UP, check.seed)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = _with_second(check.model_dir, Path(scratch) / "models")
        models = load_models(Settings(model_dir=folder, models=f"{default_model()},{_SECOND}"))
        for number, case in enumerate(CASES):
            pairs = _measure(case, models, Path(scratch) / f"experiment-{number}", texts, check.seed)
            rows.append(_row(case, pairs, check.seed))
    head = "shadow | p50 without, ms | p50 with, ms | ratio | 95 % interval | goal"
    print(f"{check.samples} pairs of requests, each with one text of {_WORDS} words\n")
    print(table(head, rows), end="")


def _texts(count: int, seed: int) -> list[str]:
    words = " ".join(load_texts(500, seed).texts).split()
    return [" ".join(words[i * 7 : i * 7 + _WORDS]) for i in range(count)]


def _with_second(model_dir: Path, folder: Path) -> Path:
    """A folder with the default model, and with a copy of it under another name."""
    name = default_model()
    shutil.copytree(model_dir, folder)
    shutil.copytree(folder / name, folder / _SECOND)
    manifest = msgspec.structs.replace(load_manifest(folder, name), name=_SECOND)
    sealed = msgspec.structs.replace(manifest, version=manifest.digest())
    (folder / _SECOND / MANIFEST).write_bytes(sealed.encode())
    return folder


def _measure(
    case: Case, models: Models, store: Path, texts: Sequence[str], seed: int
) -> list[tuple[float, float]]:
    """Milliseconds of each pair: without the shadow, and with it."""
    arms = [{"name": "now", **case.arms[0]}, {"name": "next", **case.arms[1]}]
    document = {"name": "shadow", "kind": "shadow", "arms": arms}
    Control(FolderStore(store)).start(read_experiment(json.dumps(document).encode()))
    kind, quiet = "on-demand", Settings(log_level="off")
    alone = Api(models, quiet, StartMark(), start_kind=kind)
    shadowed = Api(
        models, msgspec.structs.replace(quiet, experiments=f"{store}/"), StartMark(), start_kind=kind
    )
    dice, pairs = random.Random(seed), []
    heads = {"heads": [case.arms[0].get("head") or models.default.manifest.default_head]}
    for number, text in enumerate(Progress(texts, desc=case.title, leave=False)):
        sides = [(0, alone, heads), (1, shadowed, {})]
        dice.shuffle(sides)
        times = [0.0, 0.0]
        for side, api, fields in sides:
            body = {"text": f"{text} {store.name[-1]} {'ab'[side]}", **fields}
            times[side] = _answer_ms(api, json.dumps(body).encode(), number)
        if number >= _WARM_UP:
            pairs.append((times[0], times[1]))
    return pairs


def _answer_ms(api: Api, body: bytes, number: int) -> float:
    """Time of one answer on Lambda's terms: some seconds are left, so the shadow runs in a thread."""
    request = Request(*PREDICT, body=body, request_id=str(number), time_left_s=lambda: 29.0)
    started = time.perf_counter()
    reply = api.answer(request)
    spent_ms = (time.perf_counter() - started) * 1e3
    if reply.status != 200:
        raise RuntimeError(f"A request was answered with {reply.status}: {reply.body.decode()}")
    return spent_ms


def _row(case: Case, pairs: Sequence[tuple[float, float]], seed: int) -> tuple[str, ...]:
    dice = random.Random(seed)
    ratios = sorted(_ratio(dice.choices(pairs, k=len(pairs))) for _ in range(_RESAMPLES))
    low, high = ratios[int(0.025 * _RESAMPLES)], ratios[int(0.975 * _RESAMPLES)]
    without, beside = (statistics.median(side) for side in zip(*pairs, strict=True))
    goal = "" if case.goal is None else f"≤ {case.goal}"
    return (
        case.title,
        f"{without:.3f}",
        f"{beside:.3f}",
        f"{_ratio(pairs):.3f}",
        f"{low:.3f} to {high:.3f}",
        goal,
    )


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    """The median of the pairs' ratios: what else happens on the machine meets both sides of a pair."""
    return statistics.median(beside / without for without, beside in pairs)
