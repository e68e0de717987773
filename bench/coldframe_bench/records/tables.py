"""Parts that all tables share: lines of Markdown, and the word for a goal that was met or missed."""

from collections.abc import Iterable, Sequence

from coldframe_bench.records.quantiles import Interval

Row = Sequence[str]


def table(head: Row | str, rows: Iterable[Row]) -> str:
    """A Markdown table with a line of its own for each row. head: its cells, or its first line."""
    cells = head.split(" | ") if isinstance(head, str) else head
    lines = [cells, ["---"] * len(cells), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def verdict(ratio: Interval, goal: float) -> str:
    """Whether a goal is met, by the median; said as not sure where the interval holds the goal."""
    word = "met" if ratio.value <= goal else "**missed**"
    unsure = ratio.low <= goal <= ratio.high
    return f"≤ {goal:g}: {word}{', within the interval' if unsure else ''}"
