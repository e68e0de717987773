"""The measurement of a failing table."""

from pathlib import Path

import pytest

from coldframe_bench.benchmarks import cache_faults
from coldframe_bench.targets.faulty_server import content
from coldframe_bench.targets.machine import Check

pytestmark = pytest.mark.measures


def test_a_fault_is_measured(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against a table that answers garbage the breaker opens after three requests; the rest go without it."""
    monkeypatch.setattr(cache_faults, "FAULTS", {"garbage": content(b"<html>")})
    cache_faults.run(Check(bundle, "", 6, 0))
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    found = {cells[0].removeprefix("| "): cells for cells in rows if len(cells) > 4}
    assert (found["garbage"][1], found["garbage"][4]) == ("3", "3")
    assert (found["down: connection refused"][1], found["down: connection refused"][4]) == ("3", "3")
