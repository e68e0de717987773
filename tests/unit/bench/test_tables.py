"""Tables say what the raw lines say, goals that are missed included."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from coldframe_bench.benchmarks.cold.spent import spent
from coldframe_bench.benchmarks.compare import OURS_AUTO, compare_table
from coldframe_bench.benchmarks.encoder import OPERATIONS_PER_TOKEN, encoder_table
from coldframe_bench.benchmarks.loadgen import LOADGEN, OURS, SCENARIOS, loadgen_table
from coldframe_bench.records.budgets import load_budgets
from coldframe_bench.records.raw_files import Cold, Fact, Results, Run, Sample, Timing
from coldframe_bench.records.tables import table
from coldframe_bench.reporting.goals import goals_table
from coldframe_bench.targets.peers import load_peers

BUDGETS = load_budgets()


def results(benchmark: str, samples: list[Sample], **options: object) -> Results:
    """A raw file that was never written."""
    run = Run(benchmark, "", "", False, "", "", [], 2, 1, "", "", {}, 0.0, 0, dict(options))
    return Results(Path("none"), run, samples)


def colds(series: str, total_ms: float, **traced: dict[str, float]) -> list[Sample]:
    """Twenty processes that took about as long as each other."""
    stages, imports = traced.get("stages", {}), traced.get("imports", {})
    return [
        Cold(series, number, "warm", bool(traced), total_ms + number / 100, stages, imports)
        for number in range(20)
    ]


def test_rows_are_lines() -> None:
    """A table is Markdown, a line for each row."""
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_missed_goal_is_said() -> None:
    """A goal that is missed stands in the same table as those that are met."""
    found = results("cold", [*colds("floor", 100), *colds("encoder", 180), *colds("estimator", 30)])
    lines = goals_table({"cold": found}, BUDGETS).splitlines()
    assert "**missed**" in next(line for line in lines if "encoder" in line)
    assert "met" in next(line for line in lines if "estimator" in line)


def test_goals_beside_peers() -> None:
    """The best peer is the quickest for one caller, and the strongest at full load."""
    titles = [peer.title for peer in load_peers().values()]
    samples: list[Sample] = []
    for number, title in enumerate([OURS_AUTO, *titles]):
        conditions: dict[str, int | str] = {"what": "warm", "door": "server", "status": 200}
        samples += [Timing(title, conditions, 10.0 + number * 10 + n / 100) for n in range(30)]
        samples += [Fact("texts_per_s", title, 100.0 / (number + 1)) for _ in range(3)]
    lines = goals_table({"compare": results("compare", samples)}, BUDGETS).splitlines()
    (caller,) = (line for line in lines if "one caller" in line)
    (load,) = (line for line in lines if "full load" in line)
    assert titles[0] in caller
    assert "≤ 0.7: met" in caller
    assert titles[0] in load
    assert "≥ 2: met" in load


def test_import_that_grew_is_named() -> None:
    """A budget that is exceeded names series, kind and package; one within its noise does not."""
    imports = {"msgspec": 4.0, "pandas": 20.0, "json": 1.0}
    stages = {"interpreter": 10.0, "session": 10.0, "other": 5.0}
    traced = colds("encoder", 170, stages=stages, imports=imports)
    found = results("cold", [*colds("floor", 100), *colds("encoder", 70), *traced])
    rows = [row for row in spent(found, BUDGETS_OF_ENCODER) if row.exceeded]
    assert [(row.kind, row.name) for row in rows] == [("imports", "pandas")]
    assert "new on the hot path" in str(rows[0])


def test_share_of_the_peak() -> None:
    """Tokens per second, times the operations of a token, over those of the matrix product."""
    shape: dict[str, int | str] = {"rows": 1, "tokens": 100, "threads": 1}
    peak: dict[str, int | str] = {"side": 1000, "threads": 1}
    samples: list[Sample] = []
    for n in range(5):
        samples += [Timing("coldframe", shape, 10.0), Timing("Optimum default, int8", shape, 12.5)]
        samples += [Timing("peak, int8", peak, 2e9 / (OPERATIONS_PER_TOKEN * 10_000 * 2) * 1e3 + n * 0)]
    line = encoder_table(results("encoder", samples)).splitlines()[-1]
    assert "| 10,000 | 8,000 | 0.80 (0.80–0.80) | 50% |" in line


@pytest.mark.parametrize(("other_ms", "word"), [(10.0, "agree"), (20.0, "**differ**")])
def test_loaders_agree_or_not(other_ms: float, word: str) -> None:
    """Two loaders agree where their intervals overlap."""
    samples: list[Sample] = [
        Timing(name, {"scenario": scenario, "round": 0}, ms + n / 100)
        for scenario in SCENARIOS
        for name, ms in ((LOADGEN, 10.0), (OURS, other_ms))
        for n in range(100)
    ]
    for line in loadgen_table(results("loadgen", samples, rounds=1)).splitlines()[2:]:
        if "Offline" not in line:
            assert f"| {word} |" in line


def test_peer_that_cannot_be_installed_stays() -> None:
    """Who could not be measured is in the table with the reason."""
    found = results(
        "compare", [Fact("not installed", "Some peer", text="ERROR: no matching distribution\nmore")]
    )
    assert "| Some peer (not installed: ERROR: no matching distribution) |" in compare_table(found)


BUDGETS_OF_ENCODER = replace(BUDGETS, series={"encoder": BUDGETS.series["encoder"]})
