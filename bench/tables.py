"""Raw results to Markdown tables: those of the README and of the report."""

from collections.abc import Iterable, Sequence

from bench.budgets import Budgets, Spent, floor_ms
from bench.quantiles import Interval, median, median_ratio, quantile
from bench.records import Answer, Cold, Fact, Results, Timing
from bench.verdict import Point, Slo, judge

Row = Sequence[str]
_PERCENTILES = (0.5, 0.95, 0.99)


def table(head: Row, rows: Iterable[Row]) -> str:
    """A Markdown table with a line of its own for each row."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cold_table(results: Results, budgets: Budgets) -> str:
    """Totals of every series, with its ratio to the floor of the same page cache."""
    head = (
        "a fresh process, to its first answer",
        "page cache",
        "p50, ms",
        "p95, ms",
        "p99, ms",
        "read, MB",
        "× floor",
        "goal",
    )
    return table(head, _cold_rows(results, budgets))


def _cold_rows(results: Results, budgets: Budgets) -> Iterable[Row]:
    samples = [sample for sample in results.of(Cold) if not sample.traced]
    for series, cache in dict.fromkeys((sample.series, sample.page_cache) for sample in samples):
        own = [sample for sample in samples if (sample.series, sample.page_cache) == (series, cache)]
        totals = [sample.total_ms for sample in own]
        floor = [s.total_ms for s in samples if (s.series, s.page_cache) == ("floor", cache)]
        ratio = median_ratio(totals, floor or floor_ms(results), results.run.seed)
        goal = budgets.goals.get(series) if cache == "warm" else None
        read = [sample.read_bytes for sample in own if sample.read_bytes is not None]
        yield (
            series,
            cache,
            *(quantile(totals, p).text() for p in _PERCENTILES),
            f"{sorted(read)[len(read) // 2] / 1e6:.1f}" if read else "",
            ratio.text(2),
            "" if goal is None else verdict(ratio, goal),
        )


def verdict(ratio: Interval, goal: float) -> str:
    """Whether a goal is met, by the median; said as not sure where the interval holds the goal."""
    word = "met" if ratio.value <= goal else "**missed**"
    unsure = ratio.low <= goal <= ratio.high
    return f"≤ {goal:g}: {word}{', within the interval' if unsure else ''}"


def budget_table(rows: Sequence[Spent]) -> str:
    """Every budget, with what was spent of it."""
    head = ("series", "what", "", "found", "budget", "")
    return table(
        head,
        [
            (
                row.series,
                row.kind,
                row.name,
                row.found.text(0 if row.kind == "calls" else 3),
                f"{row.budget:g}",
                "**over**" if row.exceeded else "",
            )
            for row in rows
        ],
    )


def load_points(results: Results) -> list[Point]:
    """The verdict at every rate that was tried, as `coldframe bench load` came to it."""
    options = results.run.options
    slo = Slo(**options["slo"])
    answers: dict[tuple[str, float], list[Answer]] = {}
    for answer in results.of(Answer):
        answers.setdefault((answer.target, answer.offered_rps), []).append(answer)
    points: list[Point] = []
    loader_ms = 0.0
    for of_rate in answers.values():
        points.append(judge(of_rate, slo, options["warm_up_s"], loader_ms))
        if not loader_ms:  # the null target comes first
            loader_ms = points[0].p99_ms.value
    return points


def load_table(results: Results) -> str:
    """Every rate, with the highest one that held in bold; the null target is the loader's own share."""
    peaks = {fact.subject: fact.value for fact in results.of(Fact) if fact.name == "peak_rps"}
    hits = {fact.subject: fact.value or 0.0 for fact in results.of(Fact) if fact.name == "hit_share"}
    head = (
        "target",
        "offered, 1/s",
        "answered, 1/s",
        "p50, ms",
        "p95, ms",
        "p99, ms",
        "success",
        "from cache",
        "objective",
        "verdict",
    )
    rows = []
    for point in sorted(load_points(results), key=lambda point: (point.target, point.offered_rps)):
        rate = f"{point.offered_rps:.0f}"
        hit = hits.get(f"{point.target} at {point.offered_rps:g} rps")
        rows.append(
            (
                point.target,
                f"**{rate}**" if peaks.get(point.target) == point.offered_rps else rate,
                f"{point.throughput_rps:.1f}",
                *(interval.text(1) for interval in (point.p50_ms, point.p95_ms, point.p99_ms)),
                f"{point.success:.2%}",
                "" if hit is None else f"{hit:.0%}",
                "held" if point.held else "not held",
                point.verdict,
            )
        )
    return table(head, rows)


def compare_table(results: Results) -> str:
    """Everyone in the order measured; what could not be measured, and why."""
    facts = results.of(Fact)
    reasons = {
        f.subject: f"{f.name}: {f.text.splitlines()[0]}"
        for f in facts
        if f.name in ("not installed", "failed")
    }
    names = dict.fromkeys([t.name for t in results.of(Timing)] + list(reasons))
    head = (
        "",
        "cold start in process, ms",
        "to first HTTP answer, ms",
        "one caller: p50, ms",
        "p99, ms",
        "full load, texts/s",
        "memory, MB",
        "installed, MB",
    )
    rows = []
    for name in names:
        rate, memory, installed = (
            [
                fact.value
                for fact in facts
                if (fact.name, fact.subject) == (kind, name) and fact.value is not None
            ]
            for kind in ("texts_per_s", "memory_mb", "installed_mb")
        )
        warm = timings(results, name, "warm")
        tail = [quantile(warm, p).text(1) for p in (0.5, 0.99)] if warm else ["", ""]
        rows.append(
            (
                f"{name} ({reasons[name]})" if name in reasons else name,
                *(
                    median(cold).text() if (cold := timings(results, name, "cold", door)) else ""
                    for door in ("in process", "server")
                ),
                *tail,
                median(rate).text(1) if rate else "",
                f"{max(memory):.0f}" if memory else "",
                f"{installed[0]:.0f}" if installed else "",
            )
        )
    return table(head, rows)


def timings(results: Results, name: str, what: str, door: str = "server") -> list[float]:
    """Milliseconds of one contender's correct answers of one kind."""
    return [
        timing.ms
        for timing in results.of(Timing)
        if timing.name == name
        and (timing.conditions.get("what"), timing.conditions.get("door")) == (what, door)
        and timing.conditions.get("status", 200) == 200
    ]
