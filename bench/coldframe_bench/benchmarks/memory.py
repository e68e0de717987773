"""Needs of a served environment: milliseconds of its session, megabytes at their peak.

Each number is of fresh processes. Peaks are the kernel's own (`VmHWM`): pages of code and model that
are shared with the page cache count, as they do on Lambda.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coldframe.model.bundle import load_pair
from coldframe.model.files import encoder_folder
from coldframe.progress import Progress
from coldframe_bench.benchmarks.cold.first_requests import Subject
from coldframe_bench.loader.samples import invoke
from coldframe_bench.records.tables import table
from coldframe_bench.targets.machine import Check
from coldframe_local.paths import ROOT, default_model

_SESSION = """
import time
import coldframe.graphs.c_library
from pathlib import Path
from coldframe.model.bundle import load_encoder_manifest
from coldframe.model.encoder import Encoder

folder = Path({folder!r})
facts, row = load_encoder_manifest(folder.parent.parent, folder.name).facts, [2000] * 16
started, cpu_started = time.perf_counter(), time.process_time()
Encoder(folder, facts, threads=1).encode([row])
print([(time.perf_counter() - started) * 1e3, (time.process_time() - cpu_started) * 1e3])
"""

_ENVELOPE = {"version": "2.0", "rawPath": "/v1/predict", "requestContext": {"http": {"method": "POST"}}}
_SHORT = "The shuttle reached orbit"
_LONG = "The shuttle reached orbit and the goalie saved forty shots. "
_LONG_BYTES = 5_000_000

_FIRST = {"text": _SHORT}
_ENCODED = {"text": _SHORT, "heads": ["mlp"]}
SCENARIOS: dict[str, list[dict[str, Any]]] = {
    "first answer, by the estimator": [_FIRST],
    "first answer, by the encoder": [_FIRST, _ENCODED],
    "1,000 texts with 3 to 250 words, all heads": [
        _FIRST,
        {
            "texts": [f"{i} {_LONG * (i % 25)}" for i in range(1000)],
            "heads": ["auto", "logreg", "rf", "hgb", "mlp"],
        },
    ],
    "a text with 5 MB": [_FIRST, {"text": _LONG * (_LONG_BYTES // len(_LONG)), "heads": ["mlp"]}],
    "a text with 5 MB, not all ASCII": [
        _FIRST,
        {"text": "é🚀 " + _LONG * (_LONG_BYTES // len(_LONG)), "heads": ["mlp"]},
    ],
}


def run(check: Check) -> None:
    """Prints both tables."""
    _, encoder = load_pair(check.model_dir, default_model())
    code = _SESSION.format(folder=str(encoder_folder(check.model_dir, encoder.name)))
    command, environ = [sys.executable, "-c", code], Subject(check.model_dir).environ()
    processes = []
    for _ in Progress(range(check.samples + 1), desc="sessions", unit="process"):
        done = subprocess.run(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        processes.append(json.loads(done.stdout))
    del processes[0]  # it filled the page cache
    peaks = [(name, f"{peak_mb(check.model_dir, name):.0f}") for name in Progress(SCENARIOS, unit="process")]
    times = zip(("elapsed", "processor time"), zip(*processes, strict=True), strict=True)
    rows = [(label, f"{min(ms):.0f} ms", f"{statistics.median(ms):.0f} ms") for label, ms in times]
    print(table("session create + first run, warm page cache | min | median", rows))
    print(table("peak resident memory after | MB", peaks))
    print(f"{check.samples} processes for the session, load average {os.getloadavg()[0]:.1f}.")


def peak_mb(model_dir: Path, scenario: str) -> float:
    """Peak resident memory of a fresh environment that has answered the requests of a scenario."""
    _, peak = invoke(map(_event, SCENARIOS[scenario]), Subject(model_dir).environ())
    return peak


def _event(body: Mapping[str, Any]) -> dict[str, Any]:
    return _ENVELOPE | {"body": json.dumps(body, ensure_ascii=False)}
