"""Stage times and the cold mark."""

import json
import math
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.errors import CallerGone, OutOfTime
from coldframe.scheduling.caller import Caller
from coldframe.scheduling.limits import Limits
from coldframe.timing import Deadline, StageTimes, StartMark, log_line, time_of_day


def test_stages_add_up() -> None:
    """A stage entered twice counts both times, and the total spans everything."""
    ticks = iter([0.0, 1.0, 1.5, 2.0, 2.25, 3.0])
    times = StageTimes(clock=lambda: next(ticks))
    for _ in range(2):
        with times.stage("encode"):
            pass
    assert times.stages_ms == {"encode": 750.0}
    assert times.server_timing() == "encode;dur=750.00, total;dur=3000.00"


def test_a_failing_stage_is_timed() -> None:
    """The time of a stage that raises is not lost."""
    ticks = iter([0.0, 1.0, 1.5])
    times = StageTimes(clock=lambda: next(ticks))
    with pytest.raises(ValueError, match="broken"), times.stage("heads"):
        raise ValueError("broken")
    assert times.stages_ms == {"heads": 500.0}


def test_cold_once() -> None:
    """An on-demand environment says cold to its first request only."""
    mark = StartMark()
    assert [mark.take() for _ in range(3)] == ["cold", "warm", "warm"]


def test_initialised_ahead_is_never_cold() -> None:
    """No request waits for the init phase of an environment initialised ahead of traffic."""
    assert StartMark(is_warm=True).take() == "warm"


def test_log_line_is_one_line_of_json() -> None:
    """A log line can be parsed, and is one line whatever it holds."""
    line = log_line(route="a\nb", total_ms=1.5)
    assert "\n" not in line
    values = json.loads(line)
    assert values.pop("time").endswith("Z")
    assert values == {"route": "a\nb", "total_ms": 1.5}


@given(st.floats(0, 4e9))
def test_time_of_day_is_utc(now_s: float) -> None:
    """The time stamp reads back as the same moment, to a microsecond."""
    assert datetime.fromisoformat(time_of_day(now_s)).timestamp() == pytest.approx(now_s, abs=1e-6)


@pytest.mark.parametrize("late_s", [-1.0, 0.0, 0.04])
def test_a_moment_late_is_in_time(late_s: float) -> None:
    """Before the end of a deadline, and for 50 ms after it, work goes on."""
    ticks = iter([0.0, 1.0 + late_s])
    Deadline(1.0, lambda: next(ticks)).check()


def test_late() -> None:
    """Later than that, the work ends with an error that says what to do."""
    ticks = iter([0.0, 1.2])
    with pytest.raises(OutOfTime, match="Send fewer or shorter texts"):
        Deadline(1.0, lambda: next(ticks)).check()


def test_reading_ends_when_the_caller_does() -> None:
    """Who has hung up gets no text read; who states no time has the server's own, who states one has that."""
    gone = Caller()
    gone.leave()
    with pytest.raises(CallerGone):
        Deadline(math.inf, caller=gone).check()
    for bulk, limit_s, now_s, is_read in (
        (False, math.inf, 12.04, True),
        (False, math.inf, 12.2, False),
        (True, math.inf, 12.2, True),
        (False, 50.0, 12.2, True),
    ):
        times = iter([10.0, now_s])
        caller = Caller(bulk, arrived_s=10.0, limits=Limits(objective_s=2.0))
        deadline = Deadline(limit_s, times.__next__, caller)
        if is_read:
            deadline.check()
            continue
        with pytest.raises(OutOfTime):
            deadline.check()
