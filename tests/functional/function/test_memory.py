"""What an environment takes of its memory."""

import sys
from pathlib import Path

import pytest

from coldframe_bench.benchmarks.memory import peak_mb


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("scenario", "most_mb"),
    [("first answer, by the estimator", 75), ("first answer, by the encoder", 80), ("a text with 5 MB", 120)],
)
def test_peak(bundle: Path, scenario: str, most_mb: int) -> None:
    """An environment stays small, also with the longest of texts."""
    assert peak_mb(bundle, scenario) <= most_mb
