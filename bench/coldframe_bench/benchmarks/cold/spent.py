"""Budgets of cold starts: how much was used, and which were exceeded."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coldframe_bench.benchmarks.cold.series import Series
from coldframe_bench.records.budgets import Budgets, SeriesBudget
from coldframe_bench.records.quantiles import Interval, median_ratio
from coldframe_bench.records.raw_files import Cold, Results

STANDARD_LIBRARY = "standard library"
_WHO_IMPORTS = "python -X importtime -c 'from coldframe_functions.predict.app import handler'"


@dataclass(frozen=True)
class Spent:
    """Use of one budget: a share of the floor, or a number of calls, beside its limit."""

    series: str
    kind: str
    name: str
    found: Interval
    budget: float
    note: str = ""

    @property
    def exceeded(self) -> bool:
        """Only beyond doubt: the whole interval is over the budget."""
        return self.found.low > self.budget

    @property
    def text(self) -> str:
        """Its use, to three digits unless it is a number of calls."""
        return self.found.text(0 if self.kind == "calls" else 3)

    def __str__(self) -> str:
        unit = "" if self.kind == "calls" else " × the floor"
        line = f"{self.series}: {self.kind} {self.name} {self.text}{unit}, budget {self.budget:g}"
        return f"{line}. {self.note}" if self.note else line


def spent(results: Results, budgets: Budgets) -> list[Spent]:
    """Everything that has a budget, in the order of the file."""
    return [
        row for series, budget in budgets.series.items() for row in _series(results, budgets, series, budget)
    ]


def floor_ms(results: Results) -> list[float]:
    """Totals of the floor's processes, with a warm page cache."""
    return results.totals_ms(Series.FLOOR)


def _series(results: Results, budgets: Budgets, series: str, budget: SeriesBudget) -> Iterator[Spent]:
    floor, seed = floor_ms(results), results.run.seed
    total = median_ratio(results.totals_ms(series), floor, seed)
    yield Spent(series, "total", "first answer", total, budget.total)
    traced = [s for s in results.of(Cold) if s.series == series and s.is_warm and s.traced]
    for stage, limit in budget.stages.items():
        times = [sample.stages_ms.get(stage, 0.0) for sample in traced]
        yield Spent(series, "stage", stage, median_ratio(times, floor, seed), limit)
    imports = [by_package(sample.imports_ms) for sample in traced]
    for package in dict.fromkeys([*budget.imports, *(name for use in imports for name in use)]):
        limit = budget.imports.get(package, budgets.unlisted_import)
        ratio = median_ratio([use.get(package, 0.0) for use in imports], floor, seed)
        yield Spent(series, "imports", package, ratio, limit, _import_note(package, budget, traced))
    for name in dict.fromkeys([*budget.calls, *(name for sample in traced for name in sample.calls)]):
        counts = [sample.calls.get(name, 0) for sample in traced]
        # Every process does the same: the smallest count is a fact, not an estimate.
        use = Interval(max(counts), min(counts), max(counts))
        yield Spent(series, "calls", name, use, budget.calls.get(name, 0))


def by_package(imports_ms: Mapping[str, float]) -> dict[str, float]:
    """The modules of the standard library as one."""
    grouped: dict[str, float] = {}
    for package, ms in imports_ms.items():
        name = STANDARD_LIBRARY if package in sys.stdlib_module_names else package
        grouped[name] = grouped.get(name, 0.0) + ms
    return grouped


def _import_note(package: str, budget: SeriesBudget, traced: list[Cold]) -> str:
    if package == STANDARD_LIBRARY:
        times = traced[-1].imports_ms
        own = [name for name in times if name in sys.stdlib_module_names]
        slowest = sorted(own, key=lambda name: times[name], reverse=True)
        return f"Slowest: {', '.join(slowest[:5])}."
    known = "" if package in budget.imports else "It is new on the hot path. "
    return f"{known}Who imports it: {_WHO_IMPORTS}"
