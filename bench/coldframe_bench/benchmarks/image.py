"""The container images: what they weigh, what a cold start reads of one, and how long that takes.

Every cold start is a fresh container, or a fresh emulator, that already listens: both times are those of the
init phase and the first answer, without Docker's own start.
"""

import http.client
import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

from coldframe.progress import Progress
from coldframe_bench.records.tables import table
from coldframe_bench.targets.container import Container, docker, running
from coldframe_bench.targets.machine import Check
from coldframe_bench.targets.serving import listening
from coldframe_local.paths import ROOT

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
_LARGEST = 8
_WEIGH = """
import json, pathlib
paths = (path for root in ("/opt/python", "/opt/model") for path in pathlib.Path(root).rglob("*"))
print(json.dumps({str(p): p.stat().st_size for p in paths if p.is_file() and not p.is_symlink()}))
"""


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


@dataclass(frozen=True)
class Weights:
    """Bytes of an image for a GPU, and of every file that we put into it."""

    image_bytes: int
    files: dict[str, int]

    @property
    def ours_bytes(self) -> int:
        return sum(self.files.values())


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
    touched = json.loads(
        container.run_python((ROOT / "bench" / "coldframe_bench" / "targets" / "touched.py").read_text())
    )
    folders: dict[str, int] = {}
    for path, pages in touched["mapped"].items():
        folder = "/".join(path.split("/")[:4] if path.startswith("/opt/") else path.split("/")[:2])
        folders[folder] = folders.get(folder, 0) + pages
    return Reads(folders | {"files that were read, not mapped": touched["read"]})


def run(check: Check) -> None:
    """Prints the three tables of the function's image."""
    image = sizes(check.image)
    _print_sizes(
        f"{check.image}, on {image.base}",
        {"base": image.image_bytes - image.ours_bytes, **image.layers},
        ("ours", image.ours_bytes, OURS_BUDGET_BYTES),
        ("image", image.image_bytes, IMAGE_BUDGET_BYTES),
    )
    with running(check.image) as container:
        container.invoke(EVENTS["the encoder"])
        files = reads(container)
    folders = dict(sorted(files.folders.items(), key=lambda item: -item[1]))
    title = "\nread until the first answer, by the encoder"
    _print_sizes(title, folders, ("all", files.total_bytes, READ_BUDGET_BYTES))
    _print_times(_cold_starts(check.image, check.samples))


def run_gpu(check: Check) -> None:
    """Prints the table of the image for a GPU."""
    print(weights_table(weigh(check.image)), end="")


def weigh(image: str) -> Weights:
    """Content of the image for a GPU, as its own interpreter finds it."""
    [facts] = json.loads(docker("image", "inspect", image))
    report = docker("run", "--rm", "--network=none", "--entrypoint=python3", image, "-c", _WEIGH)
    return Weights(facts["Size"], json.loads(report))


def weights_table(weights: Weights) -> str:
    """Megabytes of the image, of its largest parts and its largest files."""
    parts: dict[str, int] = {}
    for path, size in weights.files.items():
        part = "/".join(path.split("/")[:4])
        parts[part] = parts.get(part, 0) + size
    rows = {"image": weights.image_bytes, "above its base": weights.ours_bytes}
    for group in (parts, weights.files):
        largest = sorted(group, key=group.__getitem__, reverse=True)[:_LARGEST]
        rows |= {f"`{name}`": group[name] for name in largest}
    return table("what | MB", [(name, f"{size / 1e6:,.1f}") for name, size in rows.items()])


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
    with listening("-m", "coldframe_local.cli", "up", "--port", "0") as address:
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
        started = time.perf_counter()
        connection.request("POST", "/v1/predict", body)
        answer = json.loads(connection.getresponse().read())
        elapsed_ms = (time.perf_counter() - started) * 1e3
        connection.close()
    if answer["start"] != "cold":
        raise RuntimeError("The emulator's first answer is not a cold one.")
    return elapsed_ms


def _print_sizes(title: str, parts: Mapping[str, int], *budgets: tuple[str, int, int]) -> None:
    """Parts of at least 0.1 MB, then sums beside their budgets."""
    print(title)
    for name, size in parts.items():
        if size >= 1e5:
            print(f"  {name:34} {size / 1e6:7.1f} MB")
    for name, size, budget in budgets:
        verdict = "within" if size <= budget else "OVER"
        print(f"  {name:34} {size / 1e6:7.1f} MB  {verdict} {budget / 1e6:.0f} MB")


def _print_times(times_ms: dict[str, dict[str, list[float]]]) -> None:
    print("\ninit phase and first answer             median  to the emulator")
    for by, places in times_ms.items():
        emulator = statistics.median(places["emulator"])
        for place, times in places.items():
            median = statistics.median(times)
            print(f"  {f'{place}, by {by}':34} {median:7.0f} ms  {median / emulator:5.2f}")
