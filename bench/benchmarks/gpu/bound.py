"""How many tokens per second a GPU's arithmetic allows for an encoder: nothing computes more."""

import subprocess
from pathlib import Path

from coldframe.gpu.files import WEIGHTS
from coldframe.model.bundle import EncoderFacts
from coldframe.model.files import VOCABULARY, read_file

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


def device_name() -> str:
    """The first GPU's name; empty where nvidia-smi does not say."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader", "-i", "0"],
            capture_output=True,
            text=True,
        )
    except OSError:
        return ""
    return done.stdout.strip()


def peak_flops(device: str) -> float | None:
    """Bound of the device by its name; None for one that is not in the table."""
    words = device.split()
    return next((flops for name, flops in _DENSE_FP16_FLOPS.items() if name in words), None)


def flops_per_token(folder: Path, facts: EncoderFacts) -> float:
    """Two for each weight of the layers, which multiplies and adds once. Attention adds some per cent."""
    weights = len(read_file(folder, WEIGHTS)) // _HALF_BYTES
    tables = (len(read_file(folder, VOCABULARY).splitlines()) + _POSITIONS) * facts.dimension
    return 2.0 * (weights - tables)
