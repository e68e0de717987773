"""Tables of cold starts: totals beside the floor, and budgets beside what was spent of them."""

from collections.abc import Iterable, Sequence

from coldframe_bench.benchmarks.cold.series import Series
from coldframe_bench.benchmarks.cold.spent import Spent, floor_ms
from coldframe_bench.records.budgets import Budgets
from coldframe_bench.records.quantiles import median_ratio, quantile
from coldframe_bench.records.raw_files import WARM, Cold, Results
from coldframe_bench.records.tables import Row, table, verdict

_PERCENTILES = (0.5, 0.95, 0.99)


def cold_table(results: Results, budgets: Budgets) -> str:
    """Totals of every series, with its ratio to the floor of the same page cache."""
    head = "a fresh process, from its spawn | page cache | p50, ms | p95, ms | p99, ms | read, MB"
    return table(f"{head} | × floor | goal", _cold_rows(results, budgets))


def _cold_rows(results: Results, budgets: Budgets) -> Iterable[Row]:
    samples = [sample for sample in results.of(Cold) if not sample.traced]
    for series, cache in dict.fromkeys((sample.series, sample.page_cache) for sample in samples):
        own = [sample for sample in samples if (sample.series, sample.page_cache) == (series, cache)]
        totals = [sample.total_ms for sample in own]
        floor = [s.total_ms for s in samples if (s.series, s.page_cache) == (Series.FLOOR, cache)]
        floor = floor or floor_ms(results)  # none where what was measured runs elsewhere
        ratio = median_ratio(totals, floor, results.run.seed) if floor else None
        goal = budgets.goals.get(series) if cache == WARM else None
        read = [sample.read_bytes for sample in own if sample.read_bytes is not None]
        yield (
            series,
            cache,
            *(quantile(totals, p).text() for p in _PERCENTILES),
            f"{sorted(read)[len(read) // 2] / 1e6:.1f}" if read else "",
            ratio.text(2) if ratio else "",
            verdict(ratio, goal) if ratio and goal else "",
        )


def budget_table(rows: Sequence[Spent]) -> str:
    """Every budget, with what was spent of it."""
    cells = [
        (row.series, row.kind, row.name, row.text, f"{row.budget:g}", "**over**" if row.exceeded else "")
        for row in rows
    ]
    return table(("series", "what", "", "found", "budget", ""), cells)
