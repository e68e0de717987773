"""`coldframe bench tables duckdb` and `passes`, run as a user runs them, on texts of our own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.measures


def run_bench(bundle: Path, *arguments: str) -> str:
    """What a benchmark prints; without the data set, whatever is exported."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COLDFRAME_")}
    done = subprocess.run(
        [sys.executable, "-m", "coldframe_local.cli", "bench", *arguments],
        cwd=ROOT,
        env=kept | {"COLDFRAME_MODEL_DIR": str(bundle)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(printed: str) -> list[list[str]]:
    """The cells of the rows of the printed table."""
    lines = [line for line in printed.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_functions_in_duckdb(bundle: Path) -> None:
    """`topic` finds the rows of the plain function; the ratio of all labels together is said."""
    printed = run_bench(bundle, "tables", "duckdb", "--rows", "80", "--labels", "2")
    rows = rows_of(printed)
    assert len(rows) == 2
    assert all(row[-1] == "yes" for row in rows)
    assert "times as quick as the plain function" in printed


def test_processors_of_a_request(bundle: Path) -> None:
    """Threads and passes stand beside one processor, for every mix of texts."""
    rows = rows_of(run_bench(bundle, "passes", "request", "--requests", "4"))
    assert len(rows) == 4
    for _, one_ms, *shares in rows:
        assert float(one_ms) > 0
        assert all(float(share) > 0 for share in shares) and len(shares) == 2
