"""Cold starts: fresh processes to their first answer, beside floors taken in the same run.

Every sample is a new interpreter. Kinds are interleaved, so that a noisy
machine is noisy for all of them; compare medians and ratios, not milliseconds.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent

_EVENT = """{"version": "2.0", "rawPath": "/v1/predict", "headers": {},
  "requestContext": {"stage": "$default", "http": {"method": "POST", "path": "/v1/predict"}},
  "body": '{"text": "The shuttle reached orbit"}', "isBase64Encoded": False}"""

KINDS: dict[str, str] = {
    "interpreter": "pass",
    "floor: import numpy, onnxruntime": "import numpy, onnxruntime",
    "coldframe: first answer": (
        "from functions.predict.app import handler\n"
        "from types import SimpleNamespace\n"
        f"answer = handler({_EVENT}, SimpleNamespace(aws_request_id='bench'))\n"
        "assert answer['statusCode'] == 200, answer\n"
    ),
    "the same through FastAPI and Mangum": (
        "from functions.predict.app import _fastapi, handler\n"
        "from types import SimpleNamespace\n"
        f"answer = _fastapi()({_EVENT} | {{'routeKey': '$default', 'rawQueryString': ''}},"
        " SimpleNamespace(aws_request_id='bench'))\n"
        "assert answer['statusCode'] == 200, answer\n"
    ),
}
_FLOOR = "floor: import numpy, onnxruntime"


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
