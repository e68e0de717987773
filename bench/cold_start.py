"""Cold starts: fresh processes to their first answer, beside floors taken in the same run.

Every sample is a new interpreter. Kinds are interleaved, so that a noisy
machine is noisy for all of them; compare medians and ratios, not milliseconds.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent

# A recorded event; as a literal in the code of a sample, so that no sample reads or parses it.
_EVENT = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
_ASK = """
from types import SimpleNamespace
context = SimpleNamespace(aws_request_id="bench", get_remaining_time_in_millis=lambda: 29_000)
answer = {door}({event!r}, context)
assert answer["statusCode"] == 200, answer
"""
_FLOOR = "floor: import numpy, onnxruntime"

_SURE, _UNSURE = "NASA launched the shuttle into orbit around the moon", "What a nice day"


def _first_answer(door: str, text: str) -> str:
    event = {**_EVENT, "body": json.dumps({"text": text}), "isBase64Encoded": False}
    return "from functions.predict import app\n" + _ASK.format(door=door, event=event)


KINDS: dict[str, str] = {
    "interpreter": "pass",
    _FLOOR: "import numpy, onnxruntime",
    "first answer, by the estimator": _first_answer("app.handler", _SURE),
    "first answer, by the encoder": _first_answer("app.handler", _UNSURE),
    "the same through FastAPI and Mangum": _first_answer("app._engine.get().fastapi", _UNSURE),
}


def run(model_dir: Path, samples: int) -> dict[str, list[float]]:
    """Prints the table and returns all samples, in milliseconds by kind."""
    environ = {**os.environ, "COLDFRAME_MODEL_DIR": str(model_dir), "ORT_DISABLE_TELEMETRY": "1"}
    environ["COLDFRAME_LOG_LEVEL"] = "off"
    times_ms: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for code in KINDS.values():
        _time_ms(code, environ)  # fills the page cache and writes .pyc files; not counted
    for _ in tqdm(range(samples), desc="cold starts", unit="round"):
        for kind, code in KINDS.items():
            times_ms[kind].append(_time_ms(code, environ))
    _print(times_ms)
    return times_ms


def _time_ms(code: str, environ: Mapping[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=dict(environ), cwd=ROOT, check=True)
    return (time.perf_counter() - started) * 1e3


def _print(times_ms: Mapping[str, list[float]]) -> None:
    floor = statistics.median(times_ms[_FLOOR])
    print(f"{'':38} {'min':>8} {'median':>8} {'max':>8}  median / floor")
    for kind, times in times_ms.items():
        median = statistics.median(times)
        print(f"{kind:38} {min(times):6.0f}ms {median:6.0f}ms {max(times):6.0f}ms  {median / floor:6.2f}")
