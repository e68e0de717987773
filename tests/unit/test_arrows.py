"""Rules of imports hold, and whoever breaks one is told the rule and the way out."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from coldframe_local.paths import python_path
from tests.conftest import ROOT

RULES = {
    rule["id"]: rule["name"]
    for rule in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}
COLDFRAME = "layers/shared/python/coldframe"
PLANTS = {
    "product": (f"{COLDFRAME}/server/run.py", "from coldframe_local.paths import ROOT"),
    "functions": ("functions/coldframe_functions/warmer/app.py", "import coldframe_local.paths"),
    "local": (
        "local/coldframe_local/paths.py",
        "def report(): from coldframe_bench.records import raw_files",
    ),
    "training": ("layers/model/coldframe_training/report/page.py", "from coldframe_local.paths import ROOT"),
    "bench": ("bench/coldframe_bench/data/texts.py", "from tests.conftest import ROOT"),
    "capacity": (f"{COLDFRAME}/capacity/prices.py", "from coldframe.errors import ColdframeError"),
    "scheduling": (f"{COLDFRAME}/scheduling/limits.py", "from coldframe.cpus import usable_cpus"),
    "warming": (f"{COLDFRAME}/warming/costs.py", "from coldframe.capacity.prices import PRICES"),
    "experiments": (f"{COLDFRAME}/experiments/evidence.py", "from coldframe.errors import ColdframeError"),
    "planning": ("local/coldframe_local/planner/scenarios/bill.py", "import boto3"),
    "pipeline": (f"{COLDFRAME}/pipeline/answers.py", "import boto3"),
    "gpu": (f"{COLDFRAME}/cache/policy.py", "import coldframe.gpu.files"),
    "served": (f"{COLDFRAME}/model/heads.py", "import sklearn"),
    "rooms-of-coldframe": (f"{COLDFRAME}/errors.py", "from coldframe.jobs import states"),
    "rooms-of-local": (
        "local/coldframe_local/planner/scenarios/prices.py",
        "from coldframe_local.emulator.gateway import routes",
    ),
    "rooms-of-emulator": (
        "local/coldframe_local/emulator/gateway/routes.py",
        "from coldframe_local.emulator.console import console",
    ),
    "rooms-of-lambda": (
        "local/coldframe_local/emulator/lambda_service/report.py",
        "from coldframe_local.emulator.lambda_service.account import views",
    ),
    "rooms-of-template": (
        "local/coldframe_local/emulator/template/syntax/values.py",
        "from coldframe_local.emulator.template import stores",
    ),
    "rooms-of-planner": (
        "local/coldframe_local/planner/traces/trace.py",
        "from coldframe_local.planner.scenarios import prices",
    ),
    "rooms-of-model": (
        "layers/model/coldframe_training/files/paths.py",
        "from coldframe_training.training import train",
    ),
    "rooms-of-bench": ("bench/coldframe_bench/data/texts.py", "from coldframe_bench.benchmarks import load"),
}
"""For each rule a file, and a line in it that breaks the rule and no other one."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of everything that has rules."""
    copy = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for part in ("functions", "layers/model", "local", "bench", COLDFRAME):
        ignored = shutil.ignore_patterns("__pycache__", "published", "results", "*.html")
        shutil.copytree(ROOT / part, copy / part, ignore=ignored)
    return copy


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """What `make lint` says of the tree at `root`, unwrapped."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-logo", "--no-cache"]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": python_path(root), "COLUMNS": "1000"}
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True)


def test_rules_hold(tree: Path) -> None:
    """The code as it is breaks no rule."""
    done = lint_imports(tree)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_is_tried() -> None:
    """Each rule has a line here that breaks it."""
    assert set(RULES) == set(PLANTS)


@pytest.mark.parametrize("rule", PLANTS)
def test_broken_rule_says_what_to_do(tree: Path, rule: str) -> None:
    """A forbidden import breaks its own rule and no other; the rule's sentence and the module are printed."""
    name, line = PLANTS[rule]
    file = tree / name
    before = file.read_text()
    file.write_text(f"{before}\n{line}\n")
    done = lint_imports(tree)
    file.write_text(before)
    broken = done.stdout.partition("Broken contracts")[2]
    assert done.returncode == 1, done.stdout + done.stderr
    assert [found for found, sentence in RULES.items() if sentence in broken] == [rule]
    assert re.sub(r"^.*?(?=coldframe)", "", name.removesuffix(".py")).replace("/", ".") in broken


def test_rules_of_sentences() -> None:
    """A rule's name says the rule, and after a semicolon what to do instead."""
    assert all("; " in name for name in RULES.values())
