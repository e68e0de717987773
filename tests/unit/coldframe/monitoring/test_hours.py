"""Hours of sketches: each log line is read once, and a table that fails loses nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.monitoring.drift import WEEK_S
from coldframe.monitoring.hours import HOUR_S, PATTERN, HourTable, Reading, WeekReader
from coldframe.monitoring.recorder import Answer, count_answer
from coldframe.monitoring.report import make_reports
from coldframe.monitoring.sketch import Sketch, empty_counts

WEEK = int(WEEK_S) * 3000  # a week's first second


class FailsError(Exception):
    """A store that fails."""


class Logs:
    """CloudWatch Logs with pages of two lines, of which some are empty, as the service sends them."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, str]] = []
        self.reads: list[int] = []

    def get_paginator(self, name: str) -> Logs:
        assert name == "filter_log_events"
        return self

    def paginate(self, **query: Any) -> Iterator[dict[str, Any]]:
        assert (query["logGroupName"], query["filterPattern"]) == ("group", PATTERN)
        start, end = query["startTime"], query["endTime"]
        self.reads.append(start // 1000 // HOUR_S)
        events = [{"message": line} for at_s, line in self.lines if start <= at_s * 1000 <= end]
        yield {"events": []}
        for first in range(0, len(events), 2):
            yield {"events": events[first : first + 2]}


class Table:
    """A table whose calls fail while `fails` is true."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}
        self.fails = False

    def get_paginator(self, name: str) -> Table:
        assert name == "query"
        return self

    def paginate(self, **query: Any) -> Iterator[dict[str, Any]]:
        if self.fails:
            raise FailsError
        first, last = (int(query["ExpressionAttributeValues"][name]["N"]) for name in (":first", ":last"))
        for item in self.items.values():
            yield {"Items": [item] if first <= int(item["hour"]["N"]) <= last else []}

    def put_item(self, **request: Any) -> None:
        if self.fails:
            raise FailsError
        self.items[request["Item"]["hour"]["N"]] = request["Item"]


class World:
    """A reader with its stores, and a clock."""

    def __init__(self) -> None:
        self.now_s = float(WEEK)
        self.logs, self.table = Logs(), Table()

    def read(self, most: int = 1000) -> Reading:
        """One round, which has time for so many hours."""
        left = iter(range(most))
        reader = WeekReader(self.logs, "group", HourTable("hours", "group", self.table), lambda: self.now_s)
        return reader.read({}, lambda: next(left, None) is None)

    def log(self, sketch: Sketch) -> None:
        """Writes the line of a sketch at its end."""
        self.logs.lines.append((sketch.end_s, json.dumps({"event": "sketch", "sketch": sketch.as_json()})))


def sketch(sequence: int, at_s: float, texts: int = 5, model: str = "m", labels: int = 3) -> Sketch:
    counts, dice = empty_counts(labels), random.Random(sequence)
    for _ in range(texts):
        count_answer(counts, Answer(dice.randrange(labels), dice.random(), 30, 0, 0.5), labels, None)
    return Sketch(model, "auto", "e", sequence, at_s - 60, at_s, counts)


def texts(reading: Reading) -> int:
    return sum(one.counts.texts for one in reading.sketches)


@pytest.fixture
def world() -> World:
    """Ten hours, each with a sketch in its middle, and half an hour more."""
    here = World()
    for hour in range(10):
        here.log(sketch(hour, WEEK + hour * HOUR_S + 1800))
    here.now_s = WEEK + 10.5 * HOUR_S
    return here


def test_each_line_is_read_once(world: World) -> None:
    """A second round reads the present hour alone, and has the same sums."""
    first = world.read()
    world.logs.reads.clear()
    second = world.read()
    assert (texts(first), texts(second)) == (50, 50)
    assert world.logs.reads == [WEEK // HOUR_S + 10]
    assert (first.hours_read, second.hours_read) == (11, 1)


def test_an_hour_is_kept_once_late_lines_have_come(world: World) -> None:
    """A line that comes nine minutes after its hour is counted."""
    world.now_s = WEEK + 10 * HOUR_S + 540
    world.read()
    world.log(sketch(99, WEEK + 9 * HOUR_S + 3599))
    assert texts(world.read()) == 55


def test_a_table_that_fails_for_an_hour_loses_nothing(world: World) -> None:
    """Rounds fail while the table does; the next one reads what was not stored."""
    world.table.fails = True
    for _ in range(2):
        with pytest.raises(FailsError):
            world.read()
    world.now_s += HOUR_S
    world.table.fails = False
    assert texts(world.read()) == 50


def test_a_round_without_time_is_continued(world: World) -> None:
    """Hours for which there was no time are read by later rounds, and none is lost."""
    first = world.read(most=4)
    assert (texts(first), first.hours_read, first.hours_left) == (20, 4, 7)
    assert texts(world.read(most=4)) == 40
    assert texts(world.read(most=4)) == 50


def test_a_new_week_begins_empty(world: World) -> None:
    """A week later, nothing of this week is counted, and its items have not expired."""
    world.read()
    world.now_s = WEEK + WEEK_S + 60
    assert texts(world.read()) == 0
    assert min(int(item["expires_at_s"]["N"]) for item in world.table.items.values()) > WEEK + WEEK_S


def test_two_versions_and_broken_lines(world: World) -> None:
    """Versions stay apart, a sketch of another shape is left out, and a broken one is counted."""
    world.log(sketch(50, WEEK + 1900, model="new"))
    world.log(sketch(51, WEEK + 2000, labels=4))
    world.logs.lines.append((WEEK + 2000.0, '{"event": "sketch", "sketch": 1}'))
    reading = world.read()
    assert reading.unreadable == 1
    assert {report.model: report.texts for report in make_reports(reading.sketches, [], {})} == {
        "m": 50,
        "new": 5,
    }


@settings(max_examples=30)
@given(order=st.permutations(range(8)), repeated=st.lists(st.integers(0, 7), max_size=6))
def test_order_and_repetition_change_nothing(order: list[int], repeated: list[int]) -> None:
    """Sketches that come in any order, some twice, have the sums of one delivery."""
    plain, mixed = World(), World()
    sketches = [sketch(number, WEEK + 600 * number + 60) for number in range(8)]
    for one in sketches:
        plain.log(one)
    for number in [*order, *repeated]:
        mixed.log(sketches[number])
    plain.now_s = mixed.now_s = WEEK + 3 * HOUR_S
    assert plain.read().sketches == mixed.read().sketches == mixed.read().sketches


def test_sums_end_within_their_hour(world: World) -> None:
    """A clock that is wrong moves no sum to another hour."""
    wrong = sketch(77, WEEK + 1800.0)
    line = json.dumps({"event": "sketch", "sketch": {**wrong.as_json(), "end_s": WEEK + 5e6}})
    world.logs.lines.append((WEEK + 1800.0, line))
    for one in world.read().sketches:
        assert one.sequence * HOUR_S <= one.end_s < (one.sequence + 1) * HOUR_S
