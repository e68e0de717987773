"""The container image: what it weighs, what a cold start reads of it, and how long that takes.

Every cold start is a fresh container, or a fresh emulator, that already listens: both times are those of the
init phase and the first answer, without Docker's own start.
"""

import http.client
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.targets.container import Container, docker, running
from coldframe.progress import Progress
from local.paths import ROOT

BODIES = {
    "the estimator": json.dumps({"text": "The shuttle reached orbit"}),
    "the encoder": json.dumps({"text": "The shuttle reached orbit", "heads": ["mlp"]}),
}
"""First requests, by who answers: the estimator alone, or a head asked for by name, with the encoder."""

_EVENT = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
EVENTS = {by: _EVENT | {"body": body} for by, body in BODIES.items()}

OURS_BUDGET_BYTES = 100_000_000
"""On top of the base image."""
IMAGE_BUDGET_BYTES = 260_000_000
"""Size with the base. The stand-in's size is known; AWS decides on that of its own."""
READ_BUDGET_BYTES = 80_000_000
"""Bytes of all files until the first answer, interpreter and system libraries included."""

_BASE_LABEL = "org.opencontainers.image.base.name"


@dataclass(frozen=True)
class Sizes:
    """Bytes of the image and of its layers above the base, by what the layer holds, lowest first."""

    base: str
    image_bytes: int
    layers: dict[str, int]

    @property
    def ours_bytes(self) -> int:
        """All layers above the base."""
        return sum(self.layers.values())


@dataclass(frozen=True)
class Reads:
    """Bytes that one environment needed of its files until its first answer, by folder."""

    folders: dict[str, int]

    @property
    def total_bytes(self) -> int:
        """Bytes of all folders."""
        return sum(self.folders.values())


LAYERS = ("dependencies", "encoders and models", "coldframe", "functions")
"""Layers that the COPY commands of the Dockerfile's last stages add, lowest first."""


def sizes(image: str) -> Sizes:
    """Sizes of `image` as Docker counts them, unpacked."""
    [facts] = json.loads(docker("image", "inspect", image))
    history = docker("history", "--no-trunc", "--human=false", "--format={{.Size}} {{.CreatedBy}}", image)
    copied = [int(line.split()[0]) for line in history.splitlines() if "COPY" in line][: len(LAYERS)]
    base = facts["Config"]["Labels"][_BASE_LABEL]
    return Sizes(base, facts["Size"], dict(zip(LAYERS, reversed(copied), strict=True)))


def reads(container: Container) -> Reads:
    """Files that the environment in `container` has mapped and read so far."""
    touched = json.loads(container.run_python((ROOT / "bench" / "targets" / "touched.py").read_text()))
    folders: dict[str, int] = {}
    for path, pages in touched["mapped"].items():
        folder = "/".join(path.split("/")[:4] if path.startswith("/opt/") else path.split("/")[:2])
        folders[folder] = folders.get(folder, 0) + pages
    return Reads(folders | {"files that were read, not mapped": touched["read"]})


def run(image: str, samples: int) -> None:
    """Prints the three tables."""
    _print_sizes(image, sizes(image))
    with running(image) as container:
        container.invoke(EVENTS["the encoder"])
        _print_reads(reads(container))
    _print_times(_cold_starts(image, samples))


def _cold_starts(image: str, samples: int) -> dict[str, dict[str, list[float]]]:
    """Milliseconds by who answers, and by where."""
    times_ms: dict[str, dict[str, list[float]]] = {by: {"emulator": [], "container": []} for by in BODIES}
    for _ in Progress(range(samples), desc="cold starts", unit="round"):
        for by, body in BODIES.items():
            times_ms[by]["emulator"].append(_emulator_ms(body))
            with running(image) as container:
                started = time.perf_counter()
                container.invoke(EVENTS[by])
                times_ms[by]["container"].append((time.perf_counter() - started) * 1e3)
    return times_ms


def _emulator_ms(body: str) -> float:
    """The local API's first answer: its environment starts when the request comes."""
    with _emulator() as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        started = time.perf_counter()
        connection.request("POST", "/v1/predict", body)
        answer = json.loads(connection.getresponse().read())
        elapsed_ms = (time.perf_counter() - started) * 1e3
        connection.close()
    if answer["start"] != "cold":
        raise RuntimeError("The emulator's first answer is not a cold one.")
    return elapsed_ms


@contextmanager
def _emulator() -> Iterator[int]:
    """The port of a local API without an environment yet."""
    command = [sys.executable, "-m", "local.cli", "up", "--port", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            for line in process.stdout or ():
                if listening := re.search(r"listening on http://127\.0\.0\.1:(\d+)", line):
                    yield int(listening[1])
                    return
            raise RuntimeError("`coldframe up` does not start. Run it to see why.")
        finally:
            process.terminate()


def _print_sizes(image: str, sizes: Sizes) -> None:
    print(f"{image}, on {sizes.base}")
    base_bytes = sizes.image_bytes - sizes.ours_bytes
    for name, size in {"base": base_bytes, **sizes.layers}.items():
        print(f"  {name:34} {size / 1e6:7.1f} MB")
    _print_budget("ours", sizes.ours_bytes, OURS_BUDGET_BYTES)
    _print_budget("image", sizes.image_bytes, IMAGE_BUDGET_BYTES)


def _print_reads(reads: Reads) -> None:
    print("\nread until the first answer, by the encoder")
    for folder, size in sorted(reads.folders.items(), key=lambda item: -item[1]):
        if size >= 1e5:
            print(f"  {folder:34} {size / 1e6:7.1f} MB")
    _print_budget("all", reads.total_bytes, READ_BUDGET_BYTES)


def _print_budget(name: str, value: int, budget: int) -> None:
    verdict = "within" if value <= budget else "OVER"
    print(f"  {name:34} {value / 1e6:7.1f} MB  {verdict} {budget / 1e6:.0f} MB")


def _print_times(times_ms: dict[str, dict[str, list[float]]]) -> None:
    print("\ninit phase and first answer             median  to the emulator")
    for by, places in times_ms.items():
        emulator = statistics.median(places["emulator"])
        for place, times in places.items():
            median = statistics.median(times)
            print(f"  {f'{place}, by {by}':34} {median:7.0f} ms  {median / emulator:5.2f}")
