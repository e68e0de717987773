"""The server on a GPU: tokens per second at full load, and deadlines below it."""

import json
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from coldframe.capacity.arrivals import poisson
from coldframe_bench.benchmarks.gpu.device import Watched, watch
from coldframe_bench.loader.open_loop import Load, send, send_closed
from coldframe_bench.records.raw_files import Answer

BATCH = 64  # texts of a request
_HEADER_BYTES = 400  # of the JSON part, filled up with spaces: one header for all requests
_HEADERS = {
    "content-type": "application/octet-stream",
    "inference-header-content-length": str(_HEADER_BYTES),
}


@dataclass(frozen=True)
class Loaded:
    """Requests that were sent, and what the GPU did meanwhile."""

    answers: list[Answer]
    seconds: float
    watched: Watched


def send_all(
    url: str, bodies: Sequence[bytes], concurrency: int = 1, rate_rps: float = 0.0, seed: int = 0
) -> Loaded:
    """All bodies, `concurrency` of them in work at once. rate_rps: by a Poisson schedule instead."""
    due_s = poisson(rate_rps, len(bodies), seed) if rate_rps else []
    load = Load("server", url, rate_rps, due_s, bodies, timeout_s=60.0, headers=_HEADERS)
    with watch() as watched:
        start_s = time.perf_counter()
        replies = send(load) if rate_rps else send_closed(load, concurrency)
        spent_s = time.perf_counter() - start_s
    return Loaded(replies.records, spent_s, watched)


def request_bodies(texts: Sequence[str], timeout_s: float | None) -> list[bytes]:
    """Requests for embeddings of all texts, `BATCH` in each. timeout_s: as of `request_body`."""
    return [request_body(texts[i : i + BATCH], timeout_s) for i in range(0, len(texts), BATCH)]


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
