"""AWS's numbers stand once."""

from __future__ import annotations

import ast
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from coldframe.cache import dynamodb_store
from coldframe.capacity import limits, prices
from coldframe.config import Settings

ROOT = Path(__file__).parents[4]
CAPACITY = ROOT / "layers" / "shared" / "python" / "coldframe" / "capacity"
# Those that mean nothing but what AWS says.
TELLING = {
    quota.value
    for quota in (
        limits.API_RATE,
        limits.INIT_AHEAD,
        limits.MEMORY,
        limits.PAYLOAD,
        limits.RAISED_REST_INTEGRATION,
        limits.REST_INTEGRATION,
        limits.VCPU,
    )
} | {price.on_demand_gb_s_usd for price in prices.PRICES.values()}


def numbers(file: Path) -> set[float]:
    """Numbers that a module writes, and products of them."""
    tree = ast.parse(file.read_text())
    found: set[float] = set()
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.BinOp | ast.Constant) else ""
        if re.fullmatch(r"[0-9][0-9_.e+-]*( \* [0-9_]+)*", text):
            found.add(math.prod(map(float, text.split(" * "))))
    return found


@pytest.mark.parametrize("folder", [ROOT / "local", CAPACITY], ids=lambda folder: folder.name)
def test_numbers_of_aws_stand_once(folder: Path) -> None:
    """No other module of the emulator, of `check` or of the rules of capacity writes one of them again."""
    twice = {
        (str(file.relative_to(ROOT)), number)
        for file in folder.rglob("*.py")
        if file.name not in ("limits.py", "prices.py") or file.parent != CAPACITY
        for number in numbers(file) & TELLING
    }
    assert twice == set()


def test_cold_path_agrees_with_them() -> None:
    """What a cold environment loads writes its numbers itself, to import less: they are the same."""
    settings = Settings()
    assert {settings.max_body_bytes, settings.max_answer_bytes} == {limits.PAYLOAD.value}
    assert limits.ITEM.value == dynamodb_store.ITEM_LIMIT_BYTES
    assert limits.BATCH_GET.value == dynamodb_store.GET_KEYS


def test_limits_and_prices_need_the_standard_library_alone() -> None:
    """A zip function, which has nothing else, may import them; they bring nothing of ours."""
    code = "import sys, coldframe.capacity.limits, coldframe.capacity.prices; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("coldframe")}
    assert ours == {
        "coldframe",
        "coldframe.capacity",
        "coldframe.capacity.limits",
        "coldframe.capacity.prices",
    }
