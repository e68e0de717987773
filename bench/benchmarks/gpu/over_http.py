"""The server on a GPU: its ready time, tokens per second at full load, and deadlines below it."""

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random

from bench.benchmarks.gpu.watch import Watched, watch
from bench.loader.open_loop import Load, send, send_closed
from bench.records.raw_files import Answer
from bench.targets.serving import ServerFailed, free_port
from local.paths import ROOT, python_path

BATCH = 64  # texts of a request
_READY_LIMIT_S = 120.0
_HEADER_BYTES = 400  # of the JSON part, filled up with spaces: one header for all requests


@dataclass(frozen=True)
class Running:
    """A server that is ready. ready_s: from the start of its process."""

    url: str
    ready_s: float


@dataclass(frozen=True)
class Loaded:
    """Requests that were sent, and what the GPU did meanwhile."""

    answers: list[Answer]
    seconds: float
    watched: Watched


@contextmanager
def serving(model_dir: Path, device: str) -> Iterator[Running]:
    """`python -m coldframe.server` on a free port, ready; ended afterwards. Raises ServerFailed."""
    port = free_port()
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([python_path(), os.environ.get("PYTHONPATH", "")]),
        "PORT": str(port),
        "COLDFRAME_HOST": "127.0.0.1",
        "COLDFRAME_MODEL_DIR": str(model_dir),
        "COLDFRAME_DEVICE": device,
        "COLDFRAME_L1_CACHE_BYTES": "0",
        "COLDFRAME_LOG_LEVEL": "off",
    }
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "coldframe.server"], cwd=ROOT, env=environ, stdout=sys.stderr
    )
    try:
        ready_s = _wait_until_ready(process, port, started)
        yield Running(f"http://127.0.0.1:{port}", ready_s)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def full_load(server: Running, encoder: str, bodies: Sequence[bytes], concurrency: int) -> Loaded:
    """All bodies, `concurrency` of them in work at once."""
    return _loaded(server, encoder, bodies, [], concurrency)


def at_rate(server: Running, encoder: str, bodies: Sequence[bytes], rate: float, seed: int) -> Loaded:
    """Requests by a Poisson schedule of `rate` per second that was drawn before."""
    source, due_s = Random(seed), [0.0]
    while len(due_s) < len(bodies):
        due_s.append(due_s[-1] + source.expovariate(rate))
    return _loaded(server, encoder, bodies, due_s, 0)


def request_body(texts: Sequence[str], timeout_s: float | None) -> bytes:
    """A request of the Open Inference Protocol for embeddings; these and the texts are binary tensors.

    timeout_s: Triton's parameter, which the scheduler keeps or refuses.
    """
    elements = [text.encode() for text in texts]
    binary = b"".join(struct.pack("<I", len(element)) + element for element in elements)
    parameters: dict[str, object] = {"binary_data_output": True}
    if timeout_s is not None:
        parameters["timeout"] = round(timeout_s * 1e6)
    tensor = {
        "name": "text",
        "datatype": "BYTES",
        "shape": [len(texts)],
        "parameters": {"binary_data_size": len(binary)},
    }
    request = json.dumps({"inputs": [tensor], "parameters": parameters}).encode()
    return request.ljust(_HEADER_BYTES) + binary


def _loaded(
    server: Running, encoder: str, bodies: Sequence[bytes], due_s: Sequence[float], concurrency: int
) -> Loaded:
    load = Load(
        target="server",
        url=f"{server.url}/v2/models/{encoder}/infer",
        offered_rps=len(due_s) / due_s[-1] if due_s and due_s[-1] else 0.0,
        due_s=due_s,
        bodies=bodies,
        timeout_s=60.0,
        headers={
            "content-type": "application/octet-stream",
            "inference-header-content-length": str(_HEADER_BYTES),
        },
    )
    with watch() as watched:
        start_s = time.perf_counter()
        replies = send_closed(load, concurrency) if concurrency else send(load)
        spent_s = time.perf_counter() - start_s
    return Loaded(replies.records, spent_s, watched)


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int, started: float) -> float:
    while (spent_s := time.monotonic() - started) < _READY_LIMIT_S:
        if process.poll() is not None:
            raise ServerFailed(f"The server ended with status {process.returncode}; its log says why.")
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/v2/health/ready")
            if connection.getresponse().status == 200:
                return spent_s
        except (OSError, HTTPException):
            pass
        time.sleep(0.02)
    raise ServerFailed(f"The server was not ready within {_READY_LIMIT_S:.0f} s; its log says why.")
