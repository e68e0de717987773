"""Goals of `bench/budgets.toml` beside what was reached."""

from collections.abc import Callable, Iterable, Mapping

from coldframe_bench.benchmarks.cold.series import Series
from coldframe_bench.benchmarks.cold.spent import floor_ms
from coldframe_bench.benchmarks.compare import (
    COLD,
    IN_PROCESS,
    LAMBDA_PEER,
    OURS_AUTO,
    PROCESSOR_MS,
    SERVER,
    TEXTS_PER_S,
    WARM,
    in_process_title,
    timings_ms,
)
from coldframe_bench.records.budgets import Budgets
from coldframe_bench.records.quantiles import Interval, median, median_ratio
from coldframe_bench.records.raw_files import Results
from coldframe_bench.records.tables import Row, table, verdict
from coldframe_bench.targets.peers import load_peers


def goals_table(results: Mapping[str, Results], budgets: Budgets) -> str:
    """Goals beside the results; goals that were not measured are left out."""
    rows = [*_cold_goals(results["cold"], budgets)] if "cold" in results else []
    rows += [*_peer_goals(results["compare"], budgets)] if "compare" in results else []
    return table(("goal", "found", ""), rows)


def _cold_goals(results: Results, budgets: Budgets) -> Iterable[Row]:
    for series, goal in ((series, budgets.goals[series]) for series in Series if series in budgets.goals):
        if totals_ms := results.totals_ms(series):
            ratio = median_ratio(totals_ms, floor_ms(results), results.run.seed)
            yield (f"cold start, {series} ≤ {goal:g} × the floor", ratio.text(2), verdict(ratio, goal))


def _peer_goals(results: Results, budgets: Budgets) -> Iterable[Row]:
    titles = {name: peer.title for name, peer in load_peers().items()}
    yield from _peer_cold_goals(results, budgets, titles)
    yield from load_goals(results, budgets, titles)


def load_goals(results: Results, budgets: Budgets, titles: Mapping[str, str]) -> Iterable[Row]:
    """One caller, and full load, beside the best of the peers that were measured."""
    warm = _found(titles, lambda title: timings_ms(results, title, WARM))
    rates = _found(titles, lambda title: results.facts(TEXTS_PER_S, title))
    if warm and rates:
        yield _one_caller(results, budgets.goals["warm_to_best_peer"], warm)
        yield _full_load(results, budgets.goals["throughput_to_best_peer"], rates)


def _peer_cold_goals(results: Results, budgets: Budgets, titles: Mapping[str, str]) -> Iterable[Row]:
    for series in (Series.ENCODER, Series.ESTIMATOR):
        own = timings_ms(results, in_process_title(series), COLD, IN_PROCESS)
        for peer, interface, name in (
            (LAMBDA_PEER, IN_PROCESS, "cold_to_eager_lambda"),
            ("tutorial", SERVER, "cold_to_tutorial"),
        ):
            if theirs := timings_ms(results, titles[peer], COLD, interface):
                ratio, goal = median_ratio(own, theirs, results.run.seed), budgets.goals[name]
                label = f"cold start through the {series} ≤ {goal:g} × {titles[peer]}"
                yield (label, ratio.text(3), verdict(ratio, goal))


def _one_caller(results: Results, goal: float, warm: Mapping[str, list[float]]) -> Row:
    quickest = min(warm, key=lambda title: median(warm[title]).value)
    ratio = median_ratio(timings_ms(results, OURS_AUTO, WARM), warm[quickest], results.run.seed)
    label = f"one caller, p50 ≤ {goal:g} × the best peer ({quickest})"
    return (label, ratio.text(2), verdict(ratio, goal))


def _full_load(results: Results, goal: float, rates: Mapping[str, list[float]]) -> Row:
    """Several processes of ours get more of a busy machine than one process of a peer.

    So the verdict is by the worse of two ratios: texts per second, and processor time per text.
    """
    seed = results.run.seed
    strongest = max(rates, key=lambda title: median(rates[title]).value)
    # The peer's rate over ours, so that less is better in both ratios.
    ratio = median_ratio(rates[strongest], results.facts(TEXTS_PER_S, OURS_AUTO), seed)
    more = Interval(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
    label = f"full load, texts/s ≥ {goal:g} × the best peer ({strongest})"
    times = _found({title: title for title in rates}, lambda title: results.facts(PROCESSOR_MS, title))
    least = min(times.values(), key=lambda interval: median(interval).value, default=[])
    share_ratio = median_ratio(results.facts(PROCESSOR_MS, OURS_AUTO), least, seed) if least else None
    share = f"; processor time per text {share_ratio.text(2)} × the least" if share_ratio else ""
    worse = max(
        (interval for interval in (ratio, share_ratio) if interval), key=lambda interval: interval.value
    )
    return (label, more.text(2) + share, verdict(worse, 1 / goal).replace(f"≤ {1 / goal:g}", f"≥ {goal:g}"))


def _found(titles: Mapping[str, str], of: Callable[[str], list[float]]) -> dict[str, list[float]]:
    """Measured values by title, without titles that have none."""
    return {title: values for title in titles.values() if (values := of(title))}
