"""Energy of a thousand texts, from Lambda's REPORT lines and the lines of requests."""

import json

import pytest

from coldframe.capacity.energy import energy_of
from coldframe.monitoring.work import Work

REPORT = "REPORT RequestId: 5a1f\tDuration: 12.30 ms\tBilled Duration: 500 ms\tMemory Size: 2048 MB\tMax"
REQUEST = json.dumps({"event": "request", "usage": {"texts": 4, "tokens": 9}})


def test_lines_pass_unchanged_and_their_work_is_added() -> None:
    """Billed time counts with its memory, texts by the usage of requests, with or without a prefix."""
    lines = [REPORT, REQUEST, f"2026-11-25T00:00:00 {REQUEST}", "START RequestId: 5a1f", REPORT]
    work = Work()
    assert list(work.watch(lines)) == lines
    assert (work.gb_s, work.texts) == (2.0, 8)
    assert work.summary() == f"energy of a thousand texts: {energy_of(250.0)}, by 8 texts in 2.0 billed GB-s"


@pytest.mark.parametrize(
    "line",
    [
        '{"usage"',
        '"usage"',
        '{"usage": 3}',
        '{"usage": {"texts": "4"}}',
        '{"usage": {"texts": -1}}',
        '{"usage": []}',
    ],
)
def test_broken_lines_add_nothing(line: str) -> None:
    """A line that is cut off, or whose number of texts is not one, is passed over."""
    work = Work()
    assert list(work.watch([line])) == [line]
    assert work.texts == 0


@pytest.mark.parametrize("lines", [[], [REPORT], [REQUEST]], ids=["none", "no texts", "no report"])
def test_there_is_no_energy_without_both(lines: list[str]) -> None:
    """A server's log has no REPORT lines, so it says nothing about energy."""
    work = Work()
    list(work.watch(lines))
    assert work.summary() is None
