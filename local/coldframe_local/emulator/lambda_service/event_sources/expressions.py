"""Schedule expressions of EventBridge: `rate(…)`, `cron(…)` and, for EventBridge Scheduler, `at(…)`. Pure.

Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html and
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html, read 2026-11-22.
"""

from __future__ import annotations

import calendar
import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
# 1 is Sunday for EventBridge; Python calls Monday 0.
_WEEKDAYS = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), 1)}
_YEARS = range(1970, 2200)
_FORMS = "rate(5 minutes), cron(0 8 ? * MON-FRI *)"


class BadExpression(ValueError):
    """An expression that EventBridge refuses; the text says what was found and expected."""


class Expression(Protocol):
    """When something is due."""

    def next_after(self, after: datetime, start: datetime) -> datetime | None:
        """The first time past `after`, in its time zone; None when there is none.

        start: when the schedule came to be, from which rates count.
        """


@dataclass(frozen=True, slots=True)
class Rate:
    """Every so often, counted from the start, whatever clocks do in spring and autumn."""

    period: timedelta

    def next_after(self, after: datetime, start: datetime) -> datetime | None:
        """None past the year 9999."""
        begin, before = start.astimezone(UTC), after.astimezone(UTC)
        if before < begin:
            return start
        with contextlib.suppress(OverflowError):
            return (begin + ((before - begin) // self.period + 1) * self.period).astimezone(after.tzinfo)
        return None


@dataclass(frozen=True, slots=True)
class At:
    """Once. time: without a time zone; it is that of the schedule."""

    time: datetime

    def next_after(self, after: datetime, start: datetime) -> datetime | None:
        due = self.time.replace(tzinfo=after.tzinfo)
        return due if due > after else None


@dataclass(frozen=True, slots=True)
class Cron:
    """Minutes that six fields name. is_day: whether a day is one of those of its month and week."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    is_day: Callable[[date], bool]
    months: frozenset[int]
    years: frozenset[int]

    def next_after(self, after: datetime, start: datetime) -> datetime | None:
        """A minute that the clocks leave out in spring has no run; one that comes twice in autumn has one."""
        for due in self._from(after.replace(tzinfo=None, second=0, microsecond=0) + timedelta(minutes=1)):
            aware = due.replace(tzinfo=after.tzinfo)
            exists = aware.astimezone(UTC).astimezone(after.tzinfo).replace(tzinfo=None) == due
            if exists and aware.astimezone(UTC) > after.astimezone(UTC):
                return aware
        return None

    def _from(self, first: datetime) -> Iterator[datetime]:
        """Local times from `first` on."""
        for day in self._days(first.date()):
            for hour in self.hours:
                for minute in self.minutes:
                    due = datetime(day.year, day.month, day.day, hour, minute)
                    if due >= first:
                        yield due

    def _days(self, first: date) -> Iterator[date]:
        for year in sorted(year for year in self.years if year >= first.year):
            for month in sorted(self.months):
                for day in range(1, calendar.monthrange(year, month)[1] + 1):
                    candidate = date(year, month, day)
                    if candidate >= first and self.is_day(candidate):
                        yield candidate


def parse(text: str) -> Expression:
    """An expression as EventBridge reads it. Raises BadExpression."""
    kind, bracket, inner = text.partition("(")
    if not bracket or not inner.endswith(")"):
        raise BadExpression(f"{text!r} is not a schedule expression, expected a form like {_FORMS}")
    fields = inner[:-1].split()
    match kind:
        case "rate":
            return _rate(text, fields)
        case "cron":
            return _cron(text, fields)
        case "at":
            return _at(text, fields)
    raise BadExpression(f"{text!r} is not a schedule expression, expected a form like {_FORMS}")


def _rate(text: str, fields: list[str]) -> Rate:
    """`rate(1 minute)`, `rate(5 minutes)`: the unit has an `s` unless there is one of it."""
    value, unit = fields if len(fields) == 2 else ("", "")
    singular = unit.removesuffix("s")
    is_number = value.isascii() and value.isdigit() and int(value) > 0
    if not is_number or singular not in _UNITS or (unit == singular) != (int(value) == 1):
        raise BadExpression(f"{text!r} is not a rate, expected a form like rate(1 minute) or rate(5 minutes)")
    try:
        return Rate(int(value) * _UNITS[singular])
    except OverflowError as exc:
        raise BadExpression(f"{text!r} is longer than any schedule runs") from exc


def _at(text: str, fields: list[str]) -> At:
    try:
        (time,) = fields
        return At(datetime.strptime(time, "%Y-%m-%dT%H:%M:%S"))
    except ValueError as exc:
        raise BadExpression(f"{text!r} is not a time, expected a form like at(2026-12-01T08:00:00)") from exc


def _cron(text: str, fields: list[str]) -> Cron:
    if len(fields) != 6:
        raise BadExpression(
            f"{text!r} has {len(fields)} fields, expected six:"
            " minutes hours day-of-month month day-of-week year"
        )
    minutes, hours, days, months, weekdays, years = (field.upper() for field in fields)
    if (days == "?") == (weekdays == "?"):
        raise BadExpression(f"{text!r} needs a ? in day-of-month or in day-of-week, and not in both")
    try:
        cron = Cron(
            tuple(sorted(_numbers(minutes, range(60)))),
            tuple(sorted(_numbers(hours, range(24)))),
            _days_of_month(days) if weekdays == "?" else _days_of_week(weekdays),
            frozenset(_numbers(months, range(1, 13), _MONTHS)),
            frozenset(_numbers(years, _YEARS)),
        )
    except ValueError as exc:
        raise BadExpression(f"{text!r} cannot be read: {exc}") from exc
    return cron


def _numbers(field: str, allowed: range, names: dict[str, int] | None = None) -> set[int]:
    """Values of a field: `*`, `5`, `1-5`, `*/15`, `0/10`, `1,2`, names. Raises ValueError."""
    numbers: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        low, dash, high = span.partition("-")
        if slash and not _is_count(step):
            raise ValueError(f"{part} has no step from 1 on")
        if span == "*":
            first, last = allowed.start, allowed.stop - 1
        else:
            first = _number(low, allowed, names)
            last = _number(high, allowed, names) if dash else (allowed.stop - 1 if slash else first)
        if last < first:  # FRI-MON: over the end of the week or year
            numbers.update(range(first, allowed.stop), range(allowed.start, last + 1))
        else:
            numbers.update(range(first, last + 1, int(step) if slash else 1))
    return numbers


def _number(text: str, allowed: range, names: dict[str, int] | None) -> int:
    number = (names or {}).get(text, int(text) if text.isascii() and text.isdigit() else None)
    if number is None or number not in allowed:
        raise ValueError(f"{text or 'nothing'} is not between {allowed.start} and {allowed.stop - 1}")
    return number


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) > 0


def _days_of_month(field: str) -> Callable[[date], bool]:
    """Also `L`, the last day, and `15W`, the weekday nearest to the 15th of the same month."""
    if field == "L":
        return lambda day: day.day == calendar.monthrange(day.year, day.month)[1]
    if field == "LW":
        return lambda day: day == _nearest_weekday(day, 31)
    if nearest := re.fullmatch(r"(\d{1,2})W", field):
        day_number = _number(nearest[1], range(1, 32), None)
        return lambda day: (
            day_number <= calendar.monthrange(day.year, day.month)[1]
            and day == _nearest_weekday(day, day_number)
        )
    days = _numbers(field, range(1, 32))
    return lambda day: day.day in days


def _nearest_weekday(day: date, day_number: int) -> date:
    """Day in the month of `day`: the day itself, or a weekday beside it in the same month."""
    last = calendar.monthrange(day.year, day.month)[1]
    nearest = day.replace(day=min(day_number, last))
    match nearest.weekday():
        case calendar.SATURDAY:
            return nearest + timedelta(days=2 if nearest.day == 1 else -1)
        case calendar.SUNDAY:
            return nearest + timedelta(days=-2 if nearest.day == last else 1)
    return nearest


def _days_of_week(field: str) -> Callable[[date], bool]:
    """Also `6L`, the last Friday of the month, and `3#2`, its second Tuesday."""
    if field == "L":
        field = "SAT"
    if last := re.fullmatch(r"(\w+)L", field):
        weekday = _number(last[1], range(1, 8), _WEEKDAYS)
        return lambda day: _weekday(day) == weekday and (day + timedelta(days=7)).month != day.month
    if of_month := re.fullmatch(r"(\w+)#([1-5])", field):
        weekday, which = _number(of_month[1], range(1, 8), _WEEKDAYS), int(of_month[2])
        return lambda day: _weekday(day) == weekday and (day.day - 1) // 7 + 1 == which
    days = _numbers(field, range(1, 8), _WEEKDAYS)
    return lambda day: _weekday(day) in days


def _weekday(day: date) -> int:
    return (day.weekday() + 1) % 7 + 1
