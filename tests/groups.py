"""Groups of slow tests: `--quick` leaves them out, `--slow` runs only them, two run one test at a time.

Each test file over ten seconds has a marker of one group. `--record-seconds` writes what each file took to
`seconds.json`, and `test_groups.py` compares.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

COSTS = {
    "trains": "trains a model or fits a head",
    "builds": "makes encoders or exports graphs",
    "measures": "runs a benchmark",
    "browser": "looks at a page in a browser",
    "waits": "waits for environments, processes or deadlines of the real size",
    "containers": "builds images or runs containers",
    "documents": "types the commands of README and docs",
}
"""Markers of the groups, and what makes their tests slow."""

ONE_AT_A_TIME = ("containers", "documents")
"""Groups whose tests share ports, image tags and folders: one process runs them all."""

ROOT = Path(__file__).resolve().parent.parent
SECONDS = ROOT / "tests" / "seconds.json"
_MARKED = re.compile(rf"pytest\.mark\.({'|'.join(COSTS)})\b")
_LEFT_OUT = pytest.StashKey[Counter[str]]()
_TOOK_S: defaultdict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--quick`, `--slow` and `--record-seconds`."""
    group = parser.getgroup("coldframe")
    group.addoption("--quick", action="store_true", help="Leave slow groups out. Default: run all.")
    group.addoption("--slow", action="store_true", help="Run slow groups only. Default: run all.")
    group.addoption(
        "--record-seconds", action="store_true", help="Write what each test file took to tests/seconds.json."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers."""
    config.stash[_LEFT_OUT] = Counter()
    for name, reason in COSTS.items():
        config.addinivalue_line("markers", f"{name}: {reason}; left out by `--quick`")


def cost_of(item: pytest.Item) -> str | None:
    """Group of a test; None if it is quick."""
    return next((name for name in COSTS if item.get_closest_marker(name)), None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what the options leave out."""
    slow = [item for item in items if cost_of(item)]
    if config.getoption("quick"):
        config.stash[_LEFT_OUT].update(cost for item in slow if (cost := cost_of(item)))
        deselect(config, items, slow)
    elif config.getoption("slow"):
        deselect(config, items, [item for item in items if not cost_of(item)])


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # a class without types
    """Runs the tests of a file in one process, and all files of ONE_AT_A_TIME in one, too."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "one at a time" if costs_of(file) & {*ONE_AT_A_TIME} else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """The scheduler of parallel runs."""
    return ByFile(config, log)


@cache
def costs_of(file: str) -> set[str]:
    """Groups that a test file names, by its path from the repository's root."""
    return set(_MARKED.findall((ROOT / file).read_text(encoding="utf-8")))


def deselect(config: pytest.Config, items: list[pytest.Item], others: list[pytest.Item]) -> None:
    """Removes `others` from `items`, and reports them as deselected."""
    config.hook.pytest_deselected(items=others)
    removed = set(others)
    items[:] = [item for item in items if item not in removed]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> object:
    """Prints, as the last line, which tests were left out; in a worker, reports them to the controller."""
    config = session.config
    if hasattr(config, "workeroutput"):
        counts: Counter[str] = config.stash[_LEFT_OUT]
        config.workeroutput["left_out"] = dict(counts)
    result = yield
    if hasattr(config, "workeroutput"):
        return result
    counts = config.stash[_LEFT_OUT]
    if config.getoption("record_seconds"):
        record_seconds(_TOOK_S)
    if counts:
        groups = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        print(f"Left out {counts.total()} slow tests: {groups}. Run them with `make test-all`.")
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    """Takes the counts of a worker. Every worker collects all tests, so their counts are equal."""
    config = node.config  # type: ignore[attr-defined]
    config.stash[_LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds up what the tests of each file took."""
    _TOOK_S[report.nodeid.partition("::")[0]] += report.duration


def record_seconds(took_s: Mapping[str, float]) -> None:
    """Writes seconds of each test file that ran; other files keep theirs, unless they are gone."""
    before = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    seconds = before | {name: round(value, 1) for name, value in took_s.items()}
    files = {name: value for name, value in sorted(seconds.items()) if (ROOT / name).exists()}
    SECONDS.write_text(json.dumps(files, indent=1) + "\n")
