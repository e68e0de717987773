"""Plots of raw results."""

from collections.abc import Iterable

from markupsafe import Markup

from coldframe_bench.benchmarks.cold.spent import by_package
from coldframe_bench.benchmarks.compare import COLD, IN_PROCESS, SERVER, WARM, timings_ms
from coldframe_bench.benchmarks.load import load_points
from coldframe_bench.records.quantiles import median
from coldframe_bench.records.raw_files import Cold, Results, Timing
from coldframe_local.pages.plots import Spec, layer, logarithmic, name, number, plot

_PHASES = ("spawn", "interpreter")
_NO_STAGES = (*_PHASES, "init", "invoke", "imports")


def plots(results: Results) -> list[Markup]:
    """Plots of a raw file."""
    makers = {"cold": _cold, "load": _load, "encoder": _encoder, "compare": _compare}
    name_of_run = results.run.benchmark
    return list(makers[name_of_run](results)) if name_of_run in makers else []


def _titled(title: str, spec: Spec) -> Markup:
    return plot(title, {"title": title, **spec})


def _cold(results: Results) -> Iterable[Markup]:
    yield _distributions(results)
    for series in dict.fromkeys(sample.series for sample in results.of(Cold) if sample.traced):
        yield _waterfall(results, series)


def _distributions(results: Results) -> Markup:
    """Share of processes that have answered, over time."""
    rows = []
    for series in dict.fromkeys(sample.series for sample in results.of(Cold)):
        times = sorted(results.totals_ms(series))
        rows += [
            {"series": series, "ms": ms, "share": place / len(times)} for place, ms in enumerate(times, 1)
        ]
    channels = {"x": number("ms", "ms"), "y": number("share", "share"), "color": name("series")}
    lines = layer({"type": "line", "interpolate": "step-after"}, rows, **channels)
    return _titled("Cold starts: share of processes that have answered", lines)


def _waterfall(results: Results, series: str) -> Markup:
    """Medians of the stages of traced processes, one after another."""
    traced = [sample for sample in results.of(Cold) if sample.series == series and sample.traced]
    packages = [by_package(sample.imports_ms) for sample in traced]
    bars = {stage: [sample.stages_ms.get(stage, 0.0) for sample in traced] for stage in _PHASES}
    for package in dict.fromkeys(package for package_ms in packages for package in package_ms):
        bars[f"import {package}"] = [package_ms.get(package, 0.0) for package_ms in packages]
    for stage in dict.fromkeys(stage for sample in traced for stage in sample.stages_ms):
        if stage not in _NO_STAGES:
            bars[stage] = [sample.stages_ms.get(stage, 0.0) for sample in traced]
    rows, end = [], 0.0
    for stage, times in bars.items():
        if (ms := median(times).value) >= 0.1:
            rows.append(
                {"stage": stage, "begin": end, "end": end + ms, "about": f"{stage}: {ms:.1f} ms", "ms": ms}
            )
            end += ms
    y = name("stage", axis={"grid": False})
    layers = [
        layer("bar", rows, x=number("begin", "ms"), x2={"field": "end"}, y=y, description={"field": "about"}),
        layer(
            {"type": "text", "align": "left", "dx": 6},
            rows,
            x=number("end", "ms"),
            y=y,
            text=number("ms", format=".1f"),
        ),
    ]
    return _titled(
        f"Where a cold start goes: {series} (traced; medians)", {"height": {"step": 24}, "layer": layers}
    )


def _load(results: Results) -> Iterable[Markup]:
    """Latency over the offered rate, with the bound of the objective."""
    rows = [
        {
            "series": f"{point.target}: {percentile}",
            "percentile": percentile,
            "rps": point.offered_rps,
            "ms": ms.value,
        }
        for point in load_points(results)
        for percentile, ms in (("p50", point.p50_ms), ("p99", point.p99_ms))
    ]
    x, y = logarithmic("rps", "offered, 1/s"), logarithmic("ms", "ms")
    dashes = {"domain": ["p99", "p50"], "range": [[1, 0], [2, 3]]}
    channels = {"color": name("series"), "strokeDash": name("percentile", scale=dashes, legend=None)}
    bound = {"ms": results.run.options["slo"]["bound_ms"], "words": "objective: p99"}
    layers = [
        layer({"type": "line", "point": True}, rows, x=x, y=y, **channels),
        layer({"type": "rule", "strokeDash": [6, 4]}, [bound], y=y),
        layer(
            {"type": "text", "align": "left", "dy": -8}, [bound], x={"value": 4}, y=y, text={"field": "words"}
        ),
    ]
    yield _titled("Latency over the offered rate (open loop, from the due time)", {"layer": layers})


def _encoder(results: Results) -> Iterable[Markup]:
    """Tokens per second of every variant on one thread."""
    times: dict[tuple[str, int, int], list[float]] = {}
    for t in results.of(Timing):
        if "rows" in t.conditions and t.conditions["threads"] == 1:
            key = (t.name, int(t.conditions["rows"]), int(t.conditions["tokens"]))
            times.setdefault(key, []).append(t.ms)
    rows = [
        {"variant": variant, "shape": f"{rows} × {tokens}", "rate": rows * tokens / median(ms).value * 1e3}
        for (variant, rows, tokens), ms in times.items()
    ]
    channels = {
        "x": name("shape", title="rows × tokens", axis={"grid": False, "labelAngle": 0}),
        "xOffset": name("variant"),
        "y": number("rate", "tokens/s"),
        "color": name("variant", legend={"symbolType": "square", "symbolSize": 100}),
    }
    yield _titled("Tokens per second, one thread", {"width": 760, **layer("bar", rows, **channels)})


def _compare(results: Results) -> Iterable[Markup]:
    """Cold start and warm latency of everyone."""
    names = dict.fromkeys(t.name for t in results.of(Timing))
    for what, interface, title in (
        (COLD, IN_PROCESS, "Cold start in process, to the first answer"),
        (COLD, SERVER, "Cold start of the server, to the first HTTP answer"),
        (WARM, SERVER, "One caller, one text: latency over HTTP"),
    ):
        rows = [
            {"name": one.replace("`", ""), "ms": ms}
            for one in names
            for ms in timings_ms(results, one, what, interface)
        ]
        channels = {
            "x": logarithmic("ms", "ms"),
            "y": name("name", axis={"grid": False}),
            "color": name("name", legend=None),
        }
        boxes = layer({"type": "boxplot", "extent": "min-max"}, rows, **channels)
        yield _titled(title, {"width": 560, "height": {"step": 36}, **boxes})
