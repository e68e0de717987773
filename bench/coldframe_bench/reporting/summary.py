"""The README's five numbers, each with the command that measures it again."""

from collections.abc import Iterable, Mapping

from coldframe_bench.benchmarks.cold.series import Series
from coldframe_bench.benchmarks.cold.spent import floor_ms
from coldframe_bench.benchmarks.cost import costs, load_prices, measured_costs
from coldframe_bench.records.budgets import Budgets
from coldframe_bench.records.quantiles import median, median_ratio
from coldframe_bench.records.raw_files import Results
from coldframe_bench.records.tables import Row, table
from coldframe_bench.reporting.goals import load_goals
from coldframe_bench.targets.peers import load_peers

_FIRST_ANSWERS = {
    Series.ESTIMATOR: "cold start to the first answer, by the estimator",
    Series.ENCODER: "cold start to the first answer, by the encoder",
}
_MEMORY_MB, _ARCHITECTURE = 1769, "arm64"  # what template.yaml deploys


def summary_table(results: Mapping[str, Results], budgets: Budgets) -> str:
    """Five rows; of what was not measured, nothing is said."""
    rows = [*_first_answers(results["cold"])] if "cold" in results else []
    rows += [*_beside_peers(results["compare"], budgets)] if "compare" in results else []
    rows += [*_bill(results["cost"])] if "cost" in results else []
    return table(("what", "found", "measured by"), rows)


def _first_answers(results: Results) -> Iterable[Row]:
    floor = floor_ms(results)
    for series, label in _FIRST_ANSWERS.items():
        taken_ms = results.totals_ms(series)
        ratio = median_ratio(taken_ms, floor, results.run.seed)
        yield (label, f"{median(taken_ms).value:.0f} ms, {ratio.text(2)} × the floor", "`make bench`")


def _beside_peers(results: Results, budgets: Budgets) -> Iterable[Row]:
    titles = {name: peer.title for name, peer in load_peers().items()}
    labels = ("one caller, median latency", "full load, texts per second")
    for label, (_, value, _) in zip(labels, load_goals(results, budgets, titles), strict=False):
        ratio = value.partition(";")[0]
        yield (label, f"{ratio} × the best peer's", "`coldframe bench compare`")


def _bill(results: Results) -> Iterable[Row]:
    for cost in costs(measured_costs(results), load_prices()):
        if (cost.architecture, cost.memory_mb) == (_ARCHITECTURE, _MEMORY_MB):
            label = f"a million predictions, on demand, {_ARCHITECTURE}, {_MEMORY_MB} MB"
            yield (label, f"{cost.on_demand:.2f} USD", "`coldframe bench cost`")
