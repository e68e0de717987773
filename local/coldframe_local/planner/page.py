"""The plan as one HTML page: the table, and curves. It loads nothing from elsewhere."""

from pathlib import Path

from markupsafe import Markup

from coldframe_local.pages.page import render
from coldframe_local.pages.plots import layer, logarithmic, name, number, plot
from coldframe_local.planner.planner import HEAD, Plan, Planner, Progress, lines_of, what_to_do
from coldframe_local.planner.scenarios.candidates import Candidate
from coldframe_local.planner.traces.trace import Trace

_DOTS = {"legend": {"symbolType": "circle", "symbolSize": 60}}


def page(planner: Planner, trace: Trace, plan: Plan, most: int, progress: Progress) -> str:
    """The page, which needs the extra `plan`. most: invocations of a scaled trace, for the curves."""
    best = plan.winner or plan.verdicts[0].candidate
    return render(
        Path(__file__).with_name("page.html"),
        plan=plan,
        architecture=planner.architecture,
        head=HEAD,
        verdicts=lines_of(plan),
        to_do=what_to_do(plan),
        sensitivity=_sensitivity(planner, trace, best, progress),
        break_even=_break_even(planner, trace, best.memory_mb, most, progress),
        pareto=_pareto(plan),
    )


def _sensitivity(
    planner: Planner, trace: Trace, best: Candidate, progress: Progress
) -> list[tuple[str, ...]]:
    return [
        (
            f"{minutes} minutes",
            one.setting or one.lever,
            f"{one.cold_share:.3%}",
            f"{one.p99_ms:,.1f}",
            f"{one.month_usd:,.2f}",
            planner.goal.missed(one) or "holds the goal",
        )
        for minutes, one in planner.sensitivity(trace, best, progress).items()
    ]


def _break_even(planner: Planner, trace: Trace, memory_mb: int, most: int, progress: Progress) -> Markup:
    curves = planner.break_even(trace, memory_mb, most, progress)
    rows = [
        {"lever": lever, "requests": requests, "usd": usd}
        for lever, curve in curves.items()
        for requests, usd in curve
    ]
    title = "What each lever that holds the goal costs"
    channels = {
        "x": logarithmic("requests", "requests a day"),
        "y": logarithmic("usd", "USD a month"),
        "color": name("lever", **_DOTS),
    }
    return plot(title, {"title": title, **layer({"type": "line", "point": True}, rows, **channels)})


def _pareto(plan: Plan) -> Markup:
    rows = [
        {
            "lever": one.lever,
            "usd": one.month_usd,
            "cold": one.cold_share,
            "about": f"{one.lever} {one.setting} {one.memory_mb} MB: {one.month_usd:,.2f} USD a month,"
            f" {one.cold_share:.3%} cold",
        }
        for one in plan.tried
    ]
    title = "Cold starts against cost: every setting that was tried"
    channels = {
        "x": logarithmic("usd", "USD a month"),
        "y": number("cold", "cold, share of requests", axis={"format": ".2~p"}),
        "color": name("lever", **_DOTS),
        "description": {"field": "about"},
    }
    return plot(title, {"title": title, **layer("point", rows, **channels)})
