"""Slow files have a group, quick runs say what they left out, and tests that share ports share a process."""

import json
import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.groups import COSTS, ONE_AT_A_TIME, SECONDS

SLOW_S, SLOWEST_UNIT_S = 10.0, 30.0
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "tests").rglob("test_*.py")
    if "arm64" not in path.parts  # runs only where it is asked for
)
MARKED = re.compile(rf"pytest\.mark\.({'|'.join(COSTS)})\b")


def groups_of(name: str) -> set[str]:
    """Groups that a test file names."""
    return set(MARKED.findall((ROOT / name).read_text()))


@pytest.mark.parametrize("name", FILES)
def test_a_slow_file_has_a_group(name: str) -> None:
    """Above ten seconds a file has a marker of its cost. Unit tests have none, and stay below thirty."""
    seconds = json.loads(SECONDS.read_text())
    assert name in seconds, f"Record what it takes: .venv/bin/python -m pytest --record-seconds {name}"
    if name.startswith("tests/unit/"):
        assert not groups_of(name), "`make test` runs all unit tests: remove the marker, or move the test."
        assert seconds[name] <= SLOWEST_UNIT_S
    else:
        assert seconds[name] <= SLOW_S or groups_of(name)


@pytest.mark.waits
def test_a_quick_run_says_last_what_it_left_out() -> None:
    """The last line has the number of tests of each group, also where other processes ran the tests."""
    collected = run("tests/integration/test_homes.py", "tests/test_words.py", "--collect-only", "--slow")
    left_out = re.search(r"(\d+)/\d+ tests collected", collected)
    assert left_out, collected
    printed = run("tests/integration/test_homes.py", "tests/test_words.py", "--quick", "-n", "2")
    count = left_out[1]
    expected = f"Left out {count} slow tests: {count} containers. Run them with `make test-all`."
    assert printed.splitlines()[-1] == expected
    assert " passed" in printed


@pytest.mark.parametrize("group", ONE_AT_A_TIME)
def test_tests_that_share_ports_run_in_one_process(group: str, request: pytest.FixtureRequest) -> None:
    """Containers use the same image tags, and documents the same ports and folders."""
    items = [item for item in request.session.items if item.get_closest_marker(group)]
    names = {mark.args[0] for item in items for mark in item.iter_markers("xdist_group")}
    assert names <= {"one at a time"}


def run(*arguments: str) -> str:
    """What pytest prints."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()
