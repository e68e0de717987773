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
from local.paths import ROOT, default_model, models

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

# As a runtime client does it: JSON in, the handler, JSON out, and nothing kept.
_SERVE = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from functions.predict.app import handler

context = SimpleNamespace(aws_request_id="bench", get_remaining_time_in_millis=lambda: 290_000)
for line in sys.stdin.buffer:
    answer = json.dumps(handler(json.loads(line), context))
    assert json.loads(answer)["statusCode"] == 200, answer[:500]
    del line, answer
status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]) / 1024)
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


def run(model_dir: Path, samples: int) -> None:
    """Prints both tables."""
    environ = _environ(model_dir)
    _, encoder = load_pair(model_dir, default_model())
    code = _SESSION.format(folder=str(encoder_folder(model_dir, encoder.name)))
    _output(code, environ)  # fills the page cache; not counted
    processes = [
        json.loads(_output(code, environ)) for _ in Progress(range(samples), desc="sessions", unit="process")
    ]
    peaks_mb = {name: peak_mb(model_dir, name) for name in Progress(SCENARIOS, desc="memory", unit="process")}
    print("| session create + first run, warm page cache | min | median |\n|---|---|---|")
    for label, times_ms in zip(("elapsed", "processor time"), zip(*processes, strict=True), strict=True):
        print(f"| {label} | {min(times_ms):.0f} ms | {statistics.median(times_ms):.0f} ms |")
    print("\n| peak resident memory after | MB |\n|---|---|")
    for name, most_mb in peaks_mb.items():
        print(f"| {name} | {most_mb:.0f} |")
    print(f"\n{samples} processes for the session, load average {os.getloadavg()[0]:.1f}.")


def peak_mb(model_dir: Path, scenario: str) -> float:
    """Peak resident memory of a fresh environment that has answered the requests of a scenario."""
    events = b"".join(_event(body) for body in SCENARIOS[scenario])
    return float(_output(_SERVE, _environ(model_dir), events))


def _environ(model_dir: Path) -> dict[str, str]:
    ours = {
        "COLDFRAME_MODEL_DIR": str(model_dir),
        "COLDFRAME_MODELS": models(),
        "COLDFRAME_LOG_LEVEL": "off",
    }
    return {**os.environ, **ours}


def _event(body: Mapping[str, Any]) -> bytes:
    return json.dumps(_ENVELOPE | {"body": json.dumps(body, ensure_ascii=False)}).encode() + b"\n"


def _output(code: str, environ: Mapping[str, str], content: bytes = b"") -> bytes:
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environ, cwd=ROOT, input=content, stdout=subprocess.PIPE, check=True
    ).stdout
