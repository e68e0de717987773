"""Figures as a page writes them."""

from coldframe_training.report.figures.evaluation import Setting
from coldframe_training.report.figures.intervals import Interval
from coldframe_training.report.figures.paired import Paired

NOTHING = "–"


def percent(share: float | None) -> str:
    """`81.2%`."""
    return NOTHING if share is None else f"{share:.1%}"


def number(rows: int | None) -> str:
    """`2,300`."""
    return NOTHING if rows is None else f"{rows:,}"


def with_interval(interval: Interval | None) -> str:
    """`81.2% (77.5 to 84.4)`."""
    return NOTHING if interval is None else f"{interval.value:.1%} ({_range(interval)})"


def range_of(interval: Interval) -> str:
    """`95% interval 77.5 to 84.4`."""
    return f"95% interval {_range(interval)}"


def points(comparison: Paired) -> str:
    """`+1.2 (−0.3 to +2.7)`, in percentage points."""
    value, low, high = (
        signed(side)
        for side in (comparison.difference.value, comparison.difference.low, comparison.difference.high)
    )
    return f"{value} ({low} to {high})"


def signed(share: float) -> str:
    """`+1.2`, in percentage points."""
    return f"{100 * share:+.1f}".replace("-", "−")


def p_value(comparison: Paired) -> str:
    """`0.031`, or that it is very small."""
    return "< 0.001" if comparison.p < 0.001 else f"{comparison.p:.3f}"


def count(rows: int, word: str = "row") -> str:
    """`1 row`, `2,300 rows`."""
    plural = "es" if word.endswith("s") else "s"
    return f"{rows:,} {word}{'' if rows == 1 else plural}"


def setting(value: Setting) -> str:
    """A setting as somebody would write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOTHING if value is None else str(value)


def _range(interval: Interval) -> str:
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"
