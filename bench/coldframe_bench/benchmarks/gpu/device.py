"""The first GPU: the bound of its arithmetic, its busy share and its power, as nvidia-smi says."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from coldframe.gpu.files import WEIGHTS
from coldframe.model.bundle import EncoderFacts
from coldframe.model.files import VOCABULARY, read_file

_EVERY_MS = 100
_POSITIONS = 512 + 2  # of a BERT: its table of positions, and of the two kinds of tokens
_HALF_BYTES = 2

# Dense fp16 products on tensor cores, without sparsity: NVIDIA's data sheets, read 2026-11-22.
_DENSE_FP16_FLOPS = {
    "H200": 989e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L4": 121e12,
    "T4": 65e12,
}


@dataclass
class Watched:
    """Readings every 100 ms; filled when the block ends. busy: share of the time in which any kernel ran."""

    busy: list[float] = field(default_factory=list)
    power_w: list[float] = field(default_factory=list)


@contextmanager
def watch() -> Iterator[Watched]:
    """Watches the GPU during the block; without nvidia-smi there are no readings."""
    watched = Watched()
    try:
        process = _nvidia_smi("utilization.gpu,power.draw", f"-lms={_EVERY_MS}")
    except OSError:
        yield watched
        return
    try:
        yield watched
    finally:
        process.terminate()
        for line in process.communicate()[0].splitlines():
            busy, _, power = line.partition(",")
            try:
                reading = float(busy) / 100, float(power)
            except ValueError:  # "[N/A]", or a line cut off at the end
                continue
            watched.busy.append(reading[0])
            watched.power_w.append(reading[1])


def device_name() -> str:
    """Its name; empty where nvidia-smi does not say."""
    try:
        return _nvidia_smi("name").communicate()[0].strip()
    except OSError:
        return ""


def peak_flops(device: str) -> float | None:
    """Bound of the device by its name; None for one that is not in the table."""
    words = device.split()
    return next((flops for name, flops in _DENSE_FP16_FLOPS.items() if name in words), None)


def flops_per_token(folder: Path, facts: EncoderFacts) -> float:
    """Two for each weight of the layers, which multiplies and adds once. Attention adds some per cent."""
    weights = len(read_file(folder, WEIGHTS)) // _HALF_BYTES
    tables = (len(read_file(folder, VOCABULARY).splitlines()) + _POSITIONS) * facts.dimension
    return 2.0 * (weights - tables)


def _nvidia_smi(query: str, *options: str) -> "subprocess.Popen[str]":
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "-i", "0", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
