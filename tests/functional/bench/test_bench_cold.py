"""Cold starts are measured on fresh processes, and what makes them slower is named."""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from coldframe_bench.benchmarks.cold.elsewhere import run_http
from coldframe_bench.benchmarks.cold.measure import ColdOptions, run
from coldframe_bench.benchmarks.cold.spent import Spent, floor_ms, spent
from coldframe_bench.benchmarks.cold.table import cold_table
from coldframe_bench.records.budgets import load_budgets
from coldframe_bench.records.raw_files import Cold, Fact, Results, read_results
from coldframe_bench.targets.peers import ours
from coldframe_bench.targets.serving import serve
from tests.conftest import ROOT

pytestmark = pytest.mark.measures

SAMPLES = 3

IMPORT = "import fastapi\n"
SLOW_MS = 200
SLOW_HEAD = f"""
import time
_quick = GraphHead.predict
def _slow(self, embeddings):
    time.sleep({SLOW_MS / 1e3})
    return _quick(self, embeddings)
GraphHead.predict = _slow
"""
TWICE = """
_once = TextWindows.cut
TextWindows.cut = lambda self, *given: _once(self, *given) and _once(self, *given)
"""
PLANTS = {
    ("imports", "fastapi"): ("config.py", IMPORT),
    ("stage", "heads"): ("model/heads.py", SLOW_HEAD),
    ("calls", "tokenize"): ("model/tokenizer.py", TWICE),
}


def measure(bundle: Path, folder: Path, root: Path = ROOT, checked_only: bool = True) -> Results:
    """A short run over the tree at `root`."""
    return read_results(run(ColdOptions(bundle, SAMPLES, 0, folder / "cold.jsonl", checked_only, root)))


def over(results: Results) -> dict[tuple[str, str], Spent]:
    """What the encoder's cold start exceeds of budgets that do not depend on this machine's speed.

    Any new package is too much, and so is a head that takes as long as the planted one sleeps.
    """
    budgets = load_budgets()
    encoder = budgets.series["encoder"]
    stages = encoder.stages | {"heads": 0.99 * SLOW_MS / max(floor_ms(results))}
    budgets = msgspec.structs.replace(
        budgets,
        unlisted_import=0.0,
        series=budgets.series | {"encoder": msgspec.structs.replace(encoder, stages=stages)},
    )
    rows = [row for row in spent(results, budgets) if row.series == "encoder" and row.exceeded]
    return {(row.kind, row.name): row for row in rows}


@pytest.fixture(scope="module")
def unchanged(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """All series, of the code as it is."""
    return measure(bundle, tmp_path_factory.mktemp("bench"), checked_only=False)


def test_every_series_is_sampled(unchanged: Results) -> None:
    """Each series has as many samples as were asked for, of who was to answer."""
    counted: dict[tuple[str, str, bool], int] = {}
    for sample in unchanged.of(Cold):
        key = (sample.series, sample.page_cache, sample.traced)
        counted[key] = counted.get(key, 0) + 1
    assert set(counted.values()) == {SAMPLES}
    assert {sample.by for sample in unchanged.of(Cold) if sample.series.startswith("estimator")} == {
        "estimator"
    }
    assert {sample.by for sample in unchanged.of(Cold) if sample.series.startswith("encoder")} == {"ensemble"}


def test_stages_are_within_the_total(unchanged: Results) -> None:
    """Spawn, interpreter, init and invoke are the whole of a sample, and the traced stages are seen."""
    for sample in unchanged.of(Cold):
        if sample.traced:
            phases = sum(sample.stages_ms[name] for name in ("spawn", "interpreter", "init", "invoke"))
            assert phases == pytest.approx(sample.total_ms)
            assert {"estimator", "tokenize"} <= set(sample.stages_ms)
        if sample.traced and sample.series == "encoder":
            assert {"session", "first_run", "heads"} <= set(sample.stages_ms)
            assert "msgspec" in sample.imports_ms
            assert not {"numpy", "onnxruntime"} & set(sample.imports_ms)


def test_calls_are_as_many_as_the_budgets_allow(unchanged: Results) -> None:
    """Each budget of calls is reached: a count that is lost, or a road that got shorter, is noticed."""
    budgets = load_budgets().series
    rows = [row for row in spent(unchanged, load_budgets()) if row.kind == "calls"]
    found = {(row.series, row.name): row.found.low for row in rows}
    assert found == {
        (name, call): most for name, series in budgets.items() for call, most in series.calls.items()
    }


def test_dropped_pages_are_read_again(unchanged: Results) -> None:
    """A process reads from storage what was dropped from the page cache before it."""
    read = {"warm": 0, "dropped": 0}
    for sample in unchanged.of(Cold):
        if sample.series == "encoder" and not sample.traced:
            read[sample.page_cache] += sample.read_bytes or 0
    if not read["dropped"]:
        pytest.skip("this file system keeps its pages, or does not count what is read")
    assert read["dropped"] > read["warm"]


def test_nothing_is_planted(unchanged: Results) -> None:
    """The code as it is imports no new package, and tokenizes as often as it may."""
    assert not over(unchanged).keys() & (PLANTS.keys() - {("stage", "heads")})


def test_cold_starts_over_http(bundle: Path, tmp_path: Path) -> None:
    """Behind an address only cold answers are samples; those that say warm are counted apart."""
    options = ColdOptions(bundle, 2, 0, tmp_path / "cold.jsonl")
    server = ours("coldframe", '["auto"]', bundle)
    (tmp_path / "short.toml").write_text("keep_alive_s = 0.1\n")
    short = replace(server, command=[*server.command, "--scenario", str(tmp_path / "short.toml")])
    with serve(short, "a text"):
        results = read_results(run_http(options, short.url.removesuffix("/v1/predict"), idle_s=0.5))
    (warm,) = [fact.value for fact in results.of(Fact) if fact.name == "warm_answers"]
    assert len(results.of(Cold)) + (warm or 0) == 4
    assert {sample.series.split(",")[0] for sample in results.of(Cold)} <= {"estimator", "encoder"}
    assert "over HTTP" in cold_table(results, load_budgets())


@pytest.mark.parametrize(("kind", "name"), PLANTS)
def test_planted_slowdown(bundle: Path, tmp_path: Path, kind: str, name: str) -> None:
    """An import, a slow head and a second tokenisation each turn their own budget red."""
    package = Path("layers/shared/python/coldframe")
    for part in ("functions", package):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    file, planted = PLANTS[kind, name]
    with (tmp_path / package / file).open("a") as source:
        source.write(planted)
    exceeded = over(measure(bundle, tmp_path, tmp_path))
    assert (kind, name) in exceeded
    assert not exceeded.keys() & (PLANTS.keys() - {(kind, name), ("stage", "heads")})
    assert name in str(exceeded[kind, name])
