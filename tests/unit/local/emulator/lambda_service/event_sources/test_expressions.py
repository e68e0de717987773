"""Schedule expressions, as EventBridge documents them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe_local.emulator.lambda_service.event_sources.expressions import BadExpression, parse

START = datetime(2026, 11, 22, 10, 30, 20, tzinfo=UTC)  # a Sunday
BERLIN = ZoneInfo("Europe/Berlin")


def runs(text: str, count: int, start: datetime = START) -> list[str]:
    found: list[str] = []
    expression, after = parse(text), start
    while len(found) < count and (due := expression.next_after(after, start)) is not None:
        found.append(f"{due:%m-%d %H:%M:%S}")
        after = due
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rate(1 minute)", ["11-22 10:31:20", "11-22 10:32:20"]),
        ("rate(12 hours)", ["11-22 22:30:20", "11-23 10:30:20"]),
        # The examples of EventBridge's user guide.
        ("cron(0 10 * * ? *)", ["11-23 10:00:00", "11-24 10:00:00"]),
        ("cron(15 12 * * ? *)", ["11-22 12:15:00", "11-23 12:15:00"]),
        ("cron(0 18 ? * MON-FRI *)", ["11-23 18:00:00", "11-24 18:00:00"]),
        ("cron(0 8 1 * ? *)", ["12-01 08:00:00", "01-01 08:00:00"]),
        ("cron(0/15 * * * ? *)", ["11-22 10:45:00", "11-22 11:00:00"]),
        ("cron(0/5 8-17 ? * MON-FRI *)", ["11-23 08:00:00", "11-23 08:05:00"]),
        ("cron(15 10 ? * 6L 2026-2028)", ["11-27 10:15:00", "12-25 10:15:00"]),
        ("cron(0 9 ? * 2#1 *)", ["12-07 09:00:00", "01-04 09:00:00"]),
        ("cron(0 0 L * ? *)", ["11-30 00:00:00", "12-31 00:00:00"]),
        ("cron(0 0 LW * ? *)", ["11-30 00:00:00", "12-31 00:00:00"]),
        ("cron(0 9 15W * ? *)", ["12-15 09:00:00", "01-15 09:00:00"]),
        ("cron(0 9 1W * ? *)", ["12-01 09:00:00", "01-01 09:00:00"]),
        ("cron(0 0 29 FEB ? *)", ["02-29 00:00:00", "02-29 00:00:00"]),
        ("cron(0 0 ? * L *)", ["11-28 00:00:00", "12-05 00:00:00"]),
        ("cron(0 0 ? * FRI-MON *)", ["11-23 00:00:00", "11-27 00:00:00"]),
        ("cron(0 0 1 JAN,jul ? 2027)", ["01-01 00:00:00", "07-01 00:00:00"]),
        ("at(2026-12-01T08:00:00)", ["12-01 08:00:00"]),
        ("cron(0 0 1 1 ? 2020)", []),
        ("at(2020-01-01T00:00:00)", []),
    ],
)
def test_documented_expressions(text: str, expected: list[str]) -> None:
    """Each form runs when EventBridge's documents say it does."""
    assert runs(text, 2) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "5 minutes", "rate(5 minute)", "rate(1 minutes)", "rate(0 minutes)", "rate(-1 hours)",
        "rate(5 weeks)",
        "rate(99999999999999999999 days)", "rate(²  minutes)", "cron(0 10 * * *)", "cron(0 10 * * * *)",
        "cron(0 10 ? * ? *)", "cron(60 10 * * ? *)", "cron(0 24 * * ? *)", "cron(0 10 0 * ? *)",
        "cron(0 10 * 13 ? *)", "cron(0 10 ? * 8 *)", "cron(0 10 ? * MON#6 *)", "cron(0/0 10 * * ? *)",
        "cron(a 10 * * ? *)", "cron(0 10 99W * ? *)", "cron(0 10 * * ? 1900)", "at(tomorrow)",
        "rate(5 minutes",
    ],
)  # fmt: skip
def test_refused_expressions(text: str) -> None:
    """What EventBridge refuses is refused, with what was found."""
    with pytest.raises(BadExpression, match=r"expected|cannot|needs|longer"):
        parse(text)


def test_summer_time() -> None:
    """A time that the clocks leave out has no run, one that comes twice has one, and rates do not care."""
    spring = datetime(2027, 3, 27, 12, tzinfo=BERLIN)
    assert runs("cron(30 2 * * ? *)", 2, spring) == ["03-29 02:30:00", "03-30 02:30:00"]
    autumn = datetime(2026, 10, 24, 12, tzinfo=BERLIN)
    assert runs("cron(30 2 * * ? *)", 2, autumn) == ["10-25 02:30:00", "10-26 02:30:00"]
    assert runs("rate(24 hours)", 1, spring) == ["03-28 13:00:00"]


FIELDS = st.tuples(
    st.sampled_from(["0", "*/15", "5-10", "59"]),
    st.sampled_from(["*", "0", "8-17", "23"]),
    st.sampled_from([("*", "?"), ("L", "?"), ("28W", "?"), ("?", "MON-FRI"), ("?", "3#5"), ("?", "6L")]),
    st.sampled_from(["*", "FEB", "1,7"]),
)


@settings(deadline=None)
@given(FIELDS, st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)))
def test_each_minute_is_asked_alike(fields: tuple[str, str, tuple[str, str], str], after: datetime) -> None:
    """The next run is past the time, on a whole minute, and is found from just before it, too."""
    minutes, hours, (days, weekdays), months = fields
    expression = parse(f"cron({minutes} {hours} {days} {months} {weekdays} *)")
    due = expression.next_after(after, after)
    assert due is not None
    assert due > after
    assert (due.second, due.microsecond) == (0, 0)
    assert expression.next_after(due - timedelta(seconds=1), after) == due


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text(text: str) -> None:
    """Any text is an expression or is refused, and is nothing else."""
    for each in (text, f"cron({text})", f"rate({text})", f"at({text})"):
        try:
            parse(each)
        except BadExpression:
            continue
