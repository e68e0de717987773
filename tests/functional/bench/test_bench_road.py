"""What one request runs through is counted, and stays within its budget."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from coldframe_bench.benchmarks.road import COLD, ENCODER, HIT, measure, over_budget
from coldframe_bench.records.budgets import load_budgets
from coldframe_local.cli import main
from tests.conftest import ROOT

pytestmark = pytest.mark.measures

BUDGETS = load_budgets().road
PACKAGE = Path("layers/shared/python/coldframe")
DETOUR = """
def call(function, *given):
    return function(*given)
"""
THROUGH_DETOUR = """
_direct = normalise
def normalise(text, check=None):
    from coldframe.detour import call
    return call(_direct, text)
"""


def test_roads_are_within_their_budgets(bundle: Path) -> None:
    """Every kind of request is printed with its files, and none is over its budget."""
    done = CliRunner().invoke(main, ["bench", "check", "road"])
    assert done.exit_code == 0, done.output
    for kind in BUDGETS:
        assert (
            f"\n{kind}, in the order entered\n"
            "   1 functions/coldframe_functions/predict/engine.py  Engine.handle_event\n" in done.output
        )


def test_detour_is_counted(bundle: Path, tmp_path: Path) -> None:
    """One more file between two functions is one more file and one more call, on every road through it."""
    for part in ("functions", PACKAGE):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    straight = measure(bundle, tmp_path)
    (tmp_path / PACKAGE / "detour.py").write_text(DETOUR)
    with (tmp_path / PACKAGE / "model" / "tokenizer.py").open("a") as source:
        source.write(THROUGH_DETOUR)
    longer = measure(bundle, tmp_path)
    for kind in (ENCODER, HIT, COLD):
        assert len(longer[kind].files) == len(straight[kind].files) + 1
        assert longer[kind].functions == straight[kind].functions + 2
        assert longer[kind].lines == straight[kind].lines + 3
        assert straight[kind].depth <= longer[kind].depth <= straight[kind].depth + 2
    found = [f"{PACKAGE}/detour.py", "call"]
    assert found in [list(entry) for entry in longer[ENCODER].files]


def test_over_budget_says_what_and_where(bundle: Path) -> None:
    """A road that is too long or too deep is one line each, with both figures."""
    roads = measure(bundle)
    short = {kind: type(budget)(files=1, depth=1) for kind, budget in BUDGETS.items()}
    lines = over_budget(roads, short)
    assert len(lines) == 2 * len(roads)
    assert lines[0].startswith(f"encoder: {len(roads[ENCODER].files)} files, budget 1.")
    assert lines[1].startswith(f"encoder: {roads[ENCODER].depth} calls deep, budget 1.")


@pytest.mark.parametrize("kind", BUDGETS)
def test_budgets_are_of_roads(kind: str) -> None:
    """A budget is of the handler at least."""
    assert BUDGETS[kind].files >= BUDGETS[kind].depth >= 1


def test_goal_of_the_encoder_is_its_budget() -> None:
    """A request through the encoder may not be longer than the goal."""
    assert BUDGETS[ENCODER] == load_budgets().road_goal
