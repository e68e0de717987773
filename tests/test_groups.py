"""Slow files have a group, quick runs say what they left out, and tests that share ports share a process."""

import json
import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.groups import SECONDS, costs_of

SLOW_S, SLOWEST_UNIT_S = 10.0, 30.0
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "tests").rglob("test_*.py")
    if "arm64" not in path.parts  # runs only where it is asked for
)


@pytest.mark.parametrize("name", FILES)
def test_a_slow_file_has_a_group(name: str) -> None:
    """Above ten seconds a file has a marker of its cost. Unit tests have none, and stay below thirty."""
    seconds = json.loads(SECONDS.read_text())
    if name.startswith("tests/unit/"):
        assert not costs_of(name), "`make test` runs all unit tests: remove the marker, or move the test."
        assert seconds.get(name, 0.0) <= SLOWEST_UNIT_S
    else:
        assert name in seconds, f"Record what it takes: .venv/bin/python -m pytest --record-seconds {name}"
        assert seconds[name] <= SLOW_S or costs_of(name)


@pytest.mark.waits
def test_a_quick_run_says_last_what_it_left_out() -> None:
    """The last line has the number of tests of each group, also where other processes ran the tests."""
    files = "tests/integration/test_server_manifests.py", "tests/test_words.py"
    collected = run(*files, "-q", "--collect-only", "--slow")
    left_out = re.search(r"(\d+)/\d+ tests collected", collected)
    assert left_out, collected
    printed = run(*files, "-q", "--quick", "-n", "2")
    count = left_out[1]
    expected = f"Left out {count} slow tests: {count} containers. Run them with `make test-all`."
    assert printed.splitlines()[-1] == expected
    assert " passed" in printed


@pytest.mark.waits
def test_tests_of_a_group_run_in_one_process() -> None:
    """Tests of one file share a process, and so do all tests that use the same ports, tags and folders."""
    files = ["tests/unit/bench/test_tables.py", "tests/unit/bench/loader/test_verdict.py"]
    alone = ["tests/integration/test_slim.py", "tests/integration/test_services.py"]
    printed = run(*files, *alone, "-v", "-n", "4")
    processes: dict[str, set[str]] = {}
    for process, file in re.findall(r"^\[(gw\d)\] .* (tests/\S+?\.py)::", printed, re.MULTILINE):
        processes.setdefault("alone" if file in alone else file, set()).add(process)
    assert processes.keys() == {*files, "alone"}
    assert {len(used) for used in processes.values()} == {1}


def run(*arguments: str) -> str:
    """Output of pytest."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()
