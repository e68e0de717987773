"""The plan as one HTML page: the table, and curves. It loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from local.planner.planner import Plan, Planner, Progress, what_to_do
from local.planner.traces.trace import Trace

if TYPE_CHECKING:
    import plotly.graph_objects as go

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #7f889655; padding: .3rem .6rem; text-align: right; }
td:first-child, th:first-child, td:nth-child(2), td:last-child { text-align: left; }
.table { overflow-x: auto; }
code { overflow-wrap: anywhere; }
"""
_INK, _GRID = "#7f8896", "rgba(127, 136, 150, 0.25)"


def page(planner: Planner, trace: Trace, plan: Plan, most: int, progress: Progress) -> str:
    """The page, for which plotly is needed. most: invocations of a scaled trace, for the curves."""
    best = plan.winner or plan.verdicts[0].candidate
    parts = [
        f"<h1>p99 within {plan.goal.p99_ms:,.0f} ms, cold starts within {plan.goal.cold_share:.2%}</h1>",
        f"<p>{plan.requests_a_day:,.0f} requests a day. Durations: {escape(plan.timings)}. Prices: USD of "
        f"{escape(planner.architecture)}, without free tier, API and traffic.</p>",
        _table(plan),
        *(f"<p><code>{escape(line)}</code></p>" for line in what_to_do(plan)),
        "<h2>If AWS keeps idle environments for another time</h2>",
        "<p>AWS does not publish it; 5 to 45 minutes have been seen.</p>",
        _sensitivity(planner, trace, plan, progress),
        _drawn(_break_even(planner, trace, best.memory_mb, most, progress), with_script=True),
        _drawn(_pareto(plan), with_script=False),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Coldframe: plan</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        + "\n".join(parts)
        + "</body></html>\n"
    )


def _table(plan: Plan) -> str:
    head = ("lever", "setting", "MB", "USD a month", "cold", "p50, ms", "p99, ms", "throttled", "why")
    rows = []
    for verdict in plan.verdicts:
        one = verdict.candidate
        rows.append(
            (
                one.lever,
                one.setting,
                str(one.memory_mb),
                f"{one.month_usd:,.2f}",
                f"{one.cold_share:.3%}",
                f"{one.p50_ms:,.1f}",
                f"{one.p99_ms:,.1f}",
                f"{one.throttled_share:.2%}",
                verdict.why,
            )
        )
    return _html_table(head, rows)


def _sensitivity(planner: Planner, trace: Trace, plan: Plan, progress: Progress) -> str:
    best = plan.winner or plan.verdicts[0].candidate
    rows = [
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
    return _html_table(("kept for", "setting", "cold", "p99, ms", "USD a month", ""), rows)


def _html_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _break_even(planner: Planner, trace: Trace, memory_mb: int, most: int, progress: Progress) -> go.Figure:
    figure = _figure("What each lever that holds the goal costs", "requests a day", "USD a month")
    for lever, curve in planner.break_even(trace, memory_mb, most, progress).items():
        requests, usd = zip(*curve, strict=True)
        figure.add_scatter(x=requests, y=usd, name=lever, mode="lines+markers")
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    return figure


def _pareto(plan: Plan) -> go.Figure:
    figure = _figure(
        "Cold starts against cost: every setting that was tried", "USD a month", "cold, % of requests"
    )
    for lever in dict.fromkeys(candidate.lever for candidate in plan.tried):
        mine = [candidate for candidate in plan.tried if candidate.lever == lever]
        figure.add_scatter(
            x=[candidate.month_usd for candidate in mine],
            y=[candidate.cold_share * 100 for candidate in mine],
            text=[f"{candidate.setting} {candidate.memory_mb} MB" for candidate in mine],
            name=lever,
            mode="markers",
        )
    figure.update_xaxes(type="log")
    return figure


def _figure(title: str, x: str, y: str) -> go.Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        title=title,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font_color=_INK,
        xaxis={"title": x, "gridcolor": _GRID},
        yaxis={"title": y, "gridcolor": _GRID},
    )
    return figure


def _drawn(figure: go.Figure, *, with_script: bool) -> str:
    return str(figure.to_html(full_html=False, include_plotlyjs=with_script))
