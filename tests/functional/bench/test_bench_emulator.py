"""The emulator's benchmark, in small."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.measures

COLDFRAME = Path(sys.executable).parent / "coldframe"


def test_benchmark_prints_all_sides_and_their_ratios() -> None:
    """Latency and throughput of the emulator, frozen and not, and of a bare uvicorn, from one run."""
    finished = subprocess.run(
        [COLDFRAME, "bench", "check", "emulator", "--samples", "240"],
        capture_output=True,
        text=True,
        check=True,
    )
    line = r"{} \| ([\d.]+) ms \| [\d.]+ ms \| ([\d,]+) requests/s"
    emulator = re.search(line.format("emulator, trivial handler"), finished.stdout)
    null = re.search(line.format("bare uvicorn"), finished.stdout)
    assert emulator is not None, finished
    assert null is not None, finished
    assert float(emulator[1]) > float(null[1])
    assert re.search(line.format("the same, --no-freeze"), finished.stdout)
    assert re.search(r"ratio \| [\d.]+ \|  \| 0\.\d+ \|\n", finished.stdout)
    assert re.search(r"freeze / no freeze \| [\d.]+ \|  \| [\d.]+ \|\n", finished.stdout)
