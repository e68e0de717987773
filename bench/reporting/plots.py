"""Raw results to figures, drawn so that they read on a dark page as on a light one."""

from collections.abc import Iterable

import plotly.graph_objects as go

from bench.benchmarks.cold.spent import by_package
from bench.benchmarks.compare import COLD, IN_PROCESS, SERVER, WARM, timings_ms
from bench.benchmarks.load import load_points
from bench.records.quantiles import median
from bench.records.raw_files import Cold, Results, Timing

_INK = "#7f8896"  # enough contrast to black and to white
_GRID = "rgba(127, 136, 150, 0.25)"
_COLOURS = ("#2f81f7", "#e5534b", "#3fb950", "#d4a72c", "#a371f7", "#39c5cf", "#ec6cb9", "#8b6f47", "#768390")
_PHASES = ("spawn", "interpreter")
_NO_STAGES = (*_PHASES, "init", "invoke", "imports")


def figures(results: Results) -> list[go.Figure]:
    """Plots of a raw file."""
    drawn = {"cold": _cold, "load": _load, "encoder": _encoder, "compare": _compare}
    return list(drawn[results.run.benchmark](results)) if results.run.benchmark in drawn else []


def _cold(results: Results) -> Iterable[go.Figure]:
    yield _distributions(results)
    for series in dict.fromkeys(sample.series for sample in results.of(Cold) if sample.traced):
        yield _waterfall(results, series)


def _distributions(results: Results) -> go.Figure:
    """Share of processes that have answered, over time."""
    figure = _figure("Cold starts: share of processes that have answered", "ms", "share")
    for series in dict.fromkeys(sample.series for sample in results.of(Cold)):
        times = sorted(results.totals_ms(series))
        shares = [(number + 1) / len(times) for number in range(len(times))]
        figure.add_scatter(x=times, y=shares, name=series, mode="lines", line_shape="hv")
    return figure


def _waterfall(results: Results, series: str) -> go.Figure:
    """Medians of the stages of traced processes, one after another."""
    traced = [sample for sample in results.of(Cold) if sample.series == series and sample.traced]
    packages = [by_package(sample.imports_ms) for sample in traced]
    bars = {name: [sample.stages_ms.get(name, 0.0) for sample in traced] for name in _PHASES}
    for package in dict.fromkeys(name for package_ms in packages for name in package_ms):
        bars[f"import {package}"] = [package_ms.get(package, 0.0) for package_ms in packages]
    for stage in dict.fromkeys(name for sample in traced for name in sample.stages_ms):
        if stage not in _NO_STAGES:
            bars[stage] = [sample.stages_ms.get(stage, 0.0) for sample in traced]
    middles = {name: median(times).value for name, times in bars.items()}
    shown = {name: ms for name, ms in middles.items() if ms >= 0.1}
    figure = _figure(f"Where a cold start goes: {series} (traced; medians)", "ms", "")
    figure.add_waterfall(
        y=list(shown), x=list(shown.values()), orientation="h",
        text=[f"{ms:.1f}" for ms in shown.values()], increasing_marker_color=_COLOURS[0],
        connector_line_color=_GRID,
    )  # fmt: skip
    return figure.update_yaxes(autorange="reversed")


def _load(results: Results) -> Iterable[go.Figure]:
    """Latency over the offered rate, with the bound of the objective."""
    points = load_points(results)
    figure = _figure("Latency over the offered rate (open loop, from the due time)", "offered, 1/s", "ms")
    for target in dict.fromkeys(point.target for point in points):
        own = sorted((p for p in points if p.target == target), key=lambda point: point.offered_rps)
        rates = [point.offered_rps for point in own]
        figure.add_scatter(x=rates, y=[p.p50_ms.value for p in own], name=f"{target}: p50", line_dash="dot")
        figure.add_scatter(x=rates, y=[p.p99_ms.value for p in own], name=f"{target}: p99")
    bound_ms = results.run.options["slo"]["bound_ms"]
    ends = [min(p.offered_rps for p in points), max(p.offered_rps for p in points)]
    figure.add_scatter(x=ends, y=[bound_ms] * 2, name="objective: p99", line_dash="dash", line_color=_INK)
    figure.update_xaxes(type="log")
    yield figure.update_yaxes(type="log")


def _encoder(results: Results) -> Iterable[go.Figure]:
    """Tokens per second of every variant on one thread."""
    figure = _figure("Tokens per second, one thread", "rows × tokens", "tokens/s")
    timed = [t for t in results.of(Timing) if "rows" in t.conditions and t.conditions["threads"] == 1]
    for name in dict.fromkeys(t.name for t in timed):
        shapes: dict[tuple[int, int], list[float]] = {}
        for t in timed:
            if t.name == name:
                shape = (int(t.conditions["rows"]), int(t.conditions["tokens"]))
                shapes.setdefault(shape, []).append(t.ms)
        rates = [rows * tokens / median(ms).value * 1e3 for (rows, tokens), ms in shapes.items()]
        figure.add_bar(x=[f"{rows} × {tokens}" for rows, tokens in shapes], y=rates, name=name)
    yield figure


def _compare(results: Results) -> Iterable[go.Figure]:
    """Cold start and warm latency of everyone."""
    names = list(dict.fromkeys(t.name for t in results.of(Timing)))
    for what, door, title in (
        (COLD, IN_PROCESS, "Cold start in process, to the first answer"),
        (COLD, SERVER, "Cold start of the server, to the first HTTP answer"),
        (WARM, SERVER, "One caller, one text: latency over HTTP"),
    ):
        figure = _figure(title, "ms", "")
        for name in names:
            if times := timings_ms(results, name, what, door):
                figure.add_box(x=times, name=name, boxpoints=False)
        yield (
            figure.update_layout(showlegend=False).update_xaxes(type="log").update_yaxes(autorange="reversed")
        )


def _figure(title: str, across: str, up: str) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        title=title,
        colorway=_COLOURS,
        paper_bgcolor="rgba(0, 0, 0, 0)",
        plot_bgcolor="rgba(0, 0, 0, 0)",
        font_color=_INK,
        margin={"l": 60, "r": 20, "t": 50, "b": 50},
    )
    axis = {"gridcolor": _GRID, "zerolinecolor": _GRID, "automargin": True}
    return figure.update_xaxes(title=across, **axis).update_yaxes(title=up, **axis)
