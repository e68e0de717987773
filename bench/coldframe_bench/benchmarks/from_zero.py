"""Time from no container to the first answer, and the memory of a container that works.

Containers run as the manifest for Knative says. The floor is a container of the same image that does nothing.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from coldframe.server.facts import LIVE, READY
from coldframe_bench.targets.container import docker
from coldframe_bench.targets.machine import Check
from coldframe_bench.targets.server_container import ServerContainer, as_knative, revision, serving

PORT = 8080
_POLL_S = 0.002
# The kernel's own figures of the server's process: what is resident, and its peak.
_MEMORY = "print(next(line for line in open('/proc/1/status') if line.startswith('{}')).split()[1])"
_POST = "The shuttle reached orbit and the goalie saved forty shots of the other team. " * 16
_REQUEST = {"text": _POST, "heads": ["mlp"], "cache": False}
_NOTHING_REFUSED = {"COLDFRAME_OBJECTIVE_MS": "300000"}


@dataclass(frozen=True)
class Start:
    """Milliseconds from `docker run` on. floor_ms: of a container that ends at once."""

    floor_ms: float
    live_ms: float
    ready_ms: float
    first_answer_ms: float


@dataclass(frozen=True)
class Memory:
    """Resident memory of the server's process. requests: at once, at the peak."""

    at_rest_mb: float
    peak_mb: float
    requests: int


def start(image: str) -> Start:
    """One start from zero."""
    began_s = time.perf_counter()
    docker("run", "--rm", *as_knative(PORT, {}), image, "python3", "-c", "")
    floor_ms = (time.perf_counter() - began_s) * 1e3
    began_s = time.perf_counter()
    with serving(image, PORT, {}) as container:
        moments = []
        for path in (LIVE, READY):
            while container.status(path) != 200:
                time.sleep(_POLL_S)
            moments.append((time.perf_counter() - began_s) * 1e3)
        container.ask("POST", "/v1/predict", {"text": "The shuttle reached orbit", "heads": ["mlp"]})
        moments.append((time.perf_counter() - began_s) * 1e3)
    return Start(floor_ms, *moments)


def memory(image: str) -> Memory:
    """At rest, and the peak with as many requests at once as Knative lets in, each of one post."""
    with serving(image, PORT, _NOTHING_REFUSED) as container:
        container.wait_ready()
        at_rest_mb = _memory_mb(container, "VmRSS")
        count = revision()["containerConcurrency"]
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda _: container.ask("POST", "/v1/predict", _REQUEST), range(count)))
        return Memory(at_rest_mb, _memory_mb(container, "VmHWM"), count)


def run(check: Check) -> None:
    """Prints medians."""
    starts = [start(check.image) for _ in range(check.samples)]
    print(f"From zero, medians of {check.samples}, in ms from `docker run` on:")
    for name, field in (
        ("a container that does nothing, until its end", "floor_ms"),
        ("it lives", "live_ms"),
        ("it is ready: all golden vectors have passed", "ready_ms"),
        ("its first answer, by the encoder", "first_answer_ms"),
    ):
        values = sorted(getattr(sample, field) for sample in starts)
        print(f"  {name:45} {statistics.median(values):7,.0f}  ({values[0]:,.0f} to {values[-1]:,.0f})")
    used = memory(check.image)
    print(f"Memory: {used.at_rest_mb:.0f} MB at rest, {used.peak_mb:.0f} MB at its peak with {used.requests}")
    print("requests of one post at once.")


def _memory_mb(container: ServerContainer, which: str) -> float:
    said = docker("exec", container.name, "python3", "-c", _MEMORY.format(which))
    return int(said) / 1024
