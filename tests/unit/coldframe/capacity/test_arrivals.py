"""Arrivals are decided before the run, by the seed alone."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.capacity.arrivals import (
    TraceUnreadable,
    arrivals_by_name,
    constant,
    poisson,
    read_trace,
    replay,
)

RATES = st.floats(0.1, 5_000)
COUNTS = st.integers(2, 300)
TRACE = "func_name,invoke_time_ms\na,0\nb,100\na,150\nc,1000\n"


@given(RATES, COUNTS, st.integers(0, 2**32))
def test_arrivals_rise(rate: float, count: int, seed: int) -> None:
    """Every kind of arrivals gives as many times as asked for, rising, the same for the same seed."""
    for arrivals in (poisson, constant, replay([0.0, 0.1, 0.15, 1.0])):
        times = arrivals(rate, count, seed)
        assert len(times) == count
        assert all(before <= after for before, after in pairwise(times))
        assert times == arrivals(rate, count, seed)


def test_poisson_has_its_rate() -> None:
    """10,000 arrivals at 50 a second take 200 seconds, and their gaps vary as much as they last."""
    times = poisson(50, 10_000, seed=1)
    gaps = [after - before for before, after in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    assert times[-1] == pytest.approx(200, rel=0.03)
    assert sum((gap - mean) ** 2 for gap in gaps) / len(gaps) == pytest.approx(mean**2, rel=0.1)


def test_replay_keeps_bursts(tmp_path: Path) -> None:
    """A replayed trace has the asked rate over a whole round, and gaps in the trace's proportions."""
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    times = arrivals_by_name(str(path))(10, 4, 0)
    gaps = sorted(after - before for before, after in pairwise([0.0, *times]))
    assert sum(gaps[:4]) > 0
    assert {round(gap / min(gaps), 6) for gap in gaps} == {1.0, 2.0, 17.0}


def test_azure_form(tmp_path: Path) -> None:
    """A trace with end and duration begins where its invocations do."""
    path = tmp_path / "trace.csv"
    path.write_text("app,func,end_timestamp,duration\na,f,10.5,0.5\na,f,3.0,2.0\n")
    assert read_trace(path) == [1.0, 10.0]


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "invoke_time_ms\nsoon\n", "invoke_time_ms\n5\n5\n"])
def test_no_trace(tmp_path: Path, content: str) -> None:
    """What is no trace is a named error that says what is expected."""
    path = tmp_path / "trace.csv"
    path.write_text(content)
    with pytest.raises(TraceUnreadable):
        read_trace(path)
