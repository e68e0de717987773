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
answer = {door}({event!r}, SimpleNamespace(aws_request_id="bench"))
assert answer["statusCode"] == 200, answer
"""
_FLOOR = "floor: import numpy, onnxruntime"

KINDS: dict[str, str] = {
    "interpreter": "pass",
    _FLOOR: "import numpy, onnxruntime",
    "coldframe: first answer": "from functions.predict.app import handler\n"
    + _ASK.format(door="handler", event=_EVENT),
    "the same through FastAPI and Mangum": "from functions.predict.app import _fastapi\n"
    + _ASK.format(door="_fastapi()", event=_EVENT),
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
