"""Raw results to Markdown tables: those of the README and of the report."""

from collections.abc import Iterable, Mapping, Sequence

from bench.benchmarks.compare import OURS_AUTO, load_peers
from bench.benchmarks.cost import Measured, costs, load_prices
from bench.benchmarks.encoder import OPERATIONS_PER_TOKEN
from bench.benchmarks.loadgen import LOADGEN, OURS, SCENARIOS
from bench.loader.verdict import Point, Slo, judge
from bench.reporting.budgets import Budgets, Spent, floor_ms
from bench.reporting.quantiles import Interval, median, median_ratio, quantile
from bench.reporting.records import Answer, Cold, Fact, Results, Timing

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
        floor = floor or floor_ms(results)  # none where what was measured runs elsewhere
        ratio = median_ratio(totals, floor, results.run.seed) if floor else None
        goal = budgets.goals.get(series) if cache == "warm" else None
        read = [sample.read_bytes for sample in own if sample.read_bytes is not None]
        yield (
            series,
            cache,
            *(quantile(totals, p).text() for p in _PERCENTILES),
            f"{sorted(read)[len(read) // 2] / 1e6:.1f}" if read else "",
            ratio.text(2) if ratio else "",
            verdict(ratio, goal) if ratio and goal else "",
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
        "processor, ms per text",
        "memory, MB",
        "installed, MB",
    )
    rows = []
    for name in names:
        rate, processor, memory, installed = (
            [
                fact.value
                for fact in facts
                if (fact.name, fact.subject) == (kind, name) and fact.value is not None
            ]
            for kind in ("texts_per_s", "processor_ms", "memory_mb", "installed_mb")
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
                median(processor).text(1) if processor else "",
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


def encoder_table(results: Results) -> str:
    """Tokens per second of each encoder, and their share of what the machine can multiply at best."""
    timed = results.of(Timing)
    shapes = dict.fromkeys(
        (int(t.conditions["threads"]), int(t.conditions["rows"]), int(t.conditions["tokens"]))
        for t in timed
        if "rows" in t.conditions
    )
    names = dict.fromkeys(t.name for t in timed if "rows" in t.conditions)
    head = (
        "threads",
        "rows × tokens",
        *(f"{name}, tokens/s" for name in names),
        "coldframe / Optimum default",
        "share of int8 peak",
    )
    return table(head, [_encoder_row(results, list(names), *shape) for shape in shapes])


def _encoder_row(results: Results, names: Sequence[str], threads: int, rows: int, tokens: int) -> Row:
    def times(name: str) -> list[float]:
        conditions = {"rows": rows, "tokens": tokens, "threads": threads}
        return [t.ms for t in results.of(Timing) if t.name == name and t.conditions == conditions]

    rates = {name: rows * tokens / median(times(name)).value * 1e3 for name in names}
    ratio = median_ratio(times("coldframe"), times("Optimum default, int8"), results.run.seed)
    share = rates["coldframe"] * OPERATIONS_PER_TOKEN / peak_operations(results, "peak, int8", threads)
    speeds = (f"{rate:,.0f}" for rate in rates.values())
    return (str(threads), f"{rows} × {tokens}", *speeds, ratio.text(2), f"{share:.0%}")


def peak_operations(results: Results, name: str, threads: int) -> float:
    """Multiplications and additions per second in the product of two square matrices."""
    found = [t for t in results.of(Timing) if t.name == name and t.conditions["threads"] == threads]
    side = int(found[0].conditions["side"])
    return 2 * side**3 / median([t.ms for t in found]).value * 1e3


def cost_table(results: Results) -> str:
    """USD per million on every memory size; what was assumed is in bench/data/prices.toml."""
    prices = load_prices()
    head = (
        "architecture", "MB", "billed, ms", "on demand", "every text a cache hit",
        f"provisioned, {prices.assumed.provisioned_use:.0%} in use", "cold starts", "SnapStart's cold starts",
        "SnapStart, a month", "table pays from", "container wins from",
    )  # fmt: skip
    return table(
        head,
        [
            (
                cost.architecture,
                str(cost.memory_mb),
                f"{cost.mean_ms:.1f}",
                *(f"{usd:.2f}" for usd in (cost.on_demand, cost.all_hits, cost.provisioned)),
                *(
                    f"{usd:.2f}"
                    for usd in (cost.cold_starts, cost.snapstart_cold_starts, cost.snapstart_month_usd)
                ),
                f"{cost.table_break_even:.0%} hits" if cost.table_break_even <= 1 else "never",
                f"{cost.container_wins_rps:.0f} /s",
            )
            for cost in costs(measured_costs(results), prices)
        ],
    )


def measured_costs(results: Results) -> Measured:
    """What the prices are applied to. cold_ms: of texts that need the encoder, the dearer ones."""
    return Measured(
        invocations_ms=_times_of(results, "coldframe", "computed"),
        hits_ms=_times_of(results, "coldframe", "hit"),
        cold_ms=median(_times_of(results, "encoder", "cold")).value,
        peak_mb=max(fact.value or 0.0 for fact in results.of(Fact) if fact.name == "peak_mb"),
    )


def _times_of(results: Results, name: str, what: str) -> list[float]:
    return [t.ms for t in results.of(Timing) if t.name == name and t.conditions["what"] == what]


def loadgen_table(results: Results) -> str:
    """Latency by both loaders in each scenario; they agree where their intervals overlap."""
    head = ("scenario", "what", LOADGEN, OURS, "")
    return table(head, [row for scenario in SCENARIOS for row in _loadgen_rows(results, scenario)])


def _loadgen_rows(results: Results, scenario: str) -> Iterable[Row]:
    """Offline is about the last answer: all are due at the start, so that is the throughput."""
    rounds = {
        name: [
            [
                t.ms
                for t in results.of(Timing)
                if (t.name, t.conditions["scenario"], t.conditions["round"]) == (name, scenario, number)
            ]
            for number in range(results.run.options["rounds"])
        ]
        for name in (LOADGEN, OURS)
    }
    if scenario == "Offline":
        pair = [median([len(times) / max(times) * 1e3 for times in rounds[name]]) for name in (LOADGEN, OURS)]
        yield (scenario, "answers/s", *(interval.text(1) for interval in pair), _agreement(*pair))
        return
    for p in (0.5, 0.9):
        pair = [quantile([ms for times in rounds[name] for ms in times], p) for name in (LOADGEN, OURS)]
        yield (scenario, f"p{p * 100:.0f}, ms", *(interval.text(2) for interval in pair), _agreement(*pair))


def _agreement(one: Interval, other: Interval) -> str:
    return "agree" if one.overlaps(other) else "**differ**"


def goals_table(results: Mapping[str, Results], budgets: Budgets) -> str:
    """What was aimed at beside what was reached; of what was not measured, nothing is said."""
    rows = [*_cold_goals(results["cold"], budgets)] if "cold" in results else []
    rows += [*_peer_goals(results["compare"], budgets)] if "compare" in results else []
    return table(("goal", "found", ""), rows)


def _cold_goals(results: Results, budgets: Budgets) -> Iterable[Row]:
    for series in ("encoder", "estimator"):
        totals = [
            s.total_ms
            for s in results.of(Cold)
            if s.series == series and s.page_cache == "warm" and not s.traced
        ]
        ratio = median_ratio(totals, floor_ms(results), results.run.seed)
        goal = budgets.goals[series]
        yield (f"cold start through the {series} ≤ {goal:g} × the floor", ratio.text(2), verdict(ratio, goal))


def _peer_goals(results: Results, budgets: Budgets) -> Iterable[Row]:
    seed, goals = results.run.seed, budgets.goals
    titles = {name: peer.title for name, peer in load_peers().items()}
    for series in ("encoder", "estimator"):
        own = timings(results, f"coldframe, {series}", "cold", "in process")
        for peer, door, name in (
            ("fastapi_mangum", "in process", "cold_to_eager_lambda"),
            ("tutorial", "server", "cold_to_tutorial"),
        ):
            if theirs := timings(results, titles[peer], "cold", door):
                ratio = median_ratio(own, theirs, seed)
                label = f"cold start through the {series} ≤ {goals[name]:g} × {titles[peer]}"
                yield (label, ratio.text(3), verdict(ratio, goals[name]))
    warm = {title: found for title in titles.values() if (found := timings(results, title, "warm"))}
    rates = {title: found for title in titles.values() if (found := _facts(results, title, "texts_per_s"))}
    if not warm or not rates:
        return
    quickest = min(warm, key=lambda title: median(warm[title]).value)
    ratio = median_ratio(timings(results, OURS_AUTO, "warm"), warm[quickest], seed)
    goal = goals["warm_to_best_peer"]
    yield (f"one caller, p50 ≤ {goal:g} × the best peer ({quickest})", ratio.text(2), verdict(ratio, goal))
    strongest = max(rates, key=lambda title: median(rates[title]).value)
    # Turned round, so that less is better here, too.
    ratio = median_ratio(rates[strongest], _facts(results, OURS_AUTO, "texts_per_s"), seed)
    goal = goals["throughput_to_best_peer"]
    more = Interval(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
    label = f"full load, texts/s ≥ {goal:g} × the best peer ({strongest})"
    times = [_facts(results, title, "processor_ms") for title in rates]
    least = min((found for found in times if found), key=lambda found: median(found).value, default=[])
    taken = median_ratio(_facts(results, OURS_AUTO, "processor_ms"), least, seed) if least else None
    share = f"; processor time per text {taken.text(2)} × the least" if taken else ""
    # A machine that is busy with other things gives our several processes more of it than a peer's one:
    # the verdict is by whichever of the two ratios is worse.
    worse = max((found for found in (ratio, taken) if found), key=lambda found: found.value)
    yield (label, more.text(2) + share, verdict(worse, 1 / goal).replace(f"≤ {1 / goal:g}", f"≥ {goal:g}"))


def _facts(results: Results, subject: str, name: str) -> list[float]:
    facts = (fact for fact in results.of(Fact) if (fact.name, fact.subject) == (name, subject))
    return [fact.value for fact in facts if fact.value is not None]
