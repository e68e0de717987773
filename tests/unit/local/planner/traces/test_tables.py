"""CSV traces: each form is read to the moments and durations that it tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coldframe_local.planner.traces.read import read_trace
from coldframe_local.planner.traces.trace import TraceUnusable


def written(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def azure_2019(folder: Path, counts: dict[str, dict[int, int]]) -> Path:
    """Invocations of a day: by function and minute (from 1)."""
    columns = ["HashOwner", "HashApp", "HashFunction", "Trigger", *map(str, range(1, 1441))]
    lines = [",".join(columns)]
    for name, by_minute in counts.items():
        lines.append(",".join(["o", "a", name, "http", *(str(by_minute.get(m, 0)) for m in range(1, 1441))]))
    return written(folder, "\n".join(lines) + "\n", "invocations.csv")


def test_azure_2021_arrivals_are_ends_less_durations(tmp_path: Path) -> None:
    """Each invocation's arrival is its end less its duration, in order, from the first on."""
    trace = read_trace(
        written(tmp_path, "app,func,end_timestamp,duration\na,f,12.0,2.0\na,g,11.5,0.5\na,f,30.0,1.0\n")
    )
    assert trace.arrivals_s.tolist() == [0.0, 1.0, 19.0]
    assert [trace.functions[number] for number in trace.of] == ["f", "g", "f"]
    assert trace.durations_s is not None
    assert trace.durations_s.tolist() == [2.0, 0.5, 1.0]


def test_azure_2021_may_be_a_text_file(tmp_path: Path) -> None:
    """Azure publishes it with another ending."""
    text = "app,func,end_timestamp,duration\na,f,12.0,2.0\na,f,13.0,2.0\n"
    assert len(read_trace(written(tmp_path, text, "trace.txt"))) == 2


def test_azure_2019_spreads_counts_over_their_minutes(tmp_path: Path) -> None:
    """Every minute keeps its count, the day its length, and the seed its moments."""
    path = azure_2019(tmp_path, {"f": {1: 3, 600: 50}, "g": {1440: 2}})
    trace = read_trace(path, seed=3)
    minutes = np.bincount((trace.only("f").arrivals_s // 60).astype(int), minlength=1440)
    assert (minutes[0], minutes[599], minutes.sum()) == (3, 50, 53)
    assert trace.span_s == 86_400.0
    assert trace.only("g").arrivals_s.min() >= 1439 * 60
    assert read_trace(path, seed=3).arrivals_s.tolist() == trace.arrivals_s.tolist()
    assert read_trace(path, function="g").functions == ("g",)


def test_azure_2019_draws_durations_between_the_percentiles(tmp_path: Path) -> None:
    """Half of them below the median, and none outside of the least and the most."""
    columns = ",".join(f"percentile_Average_{p}" for p in (0, 1, 25, 50, 75, 99, 100))
    durations = written(tmp_path, f"HashFunction,{columns}\nf,1,2,10,20,40,90,100\n", "durations.csv")
    trace = read_trace(azure_2019(tmp_path, {"f": {5: 4000}}), durations=durations)
    assert trace.durations_s is not None
    assert np.median(trace.durations_s) == pytest.approx(0.020, rel=0.1)
    assert 0.001 <= trace.durations_s.min() < trace.durations_s.max() <= 0.1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arrival_s\n5.0\n7.5\n", [0.0, 2.5]),
        ("func_name,invoke_time_ms\nf,500\ng,100\n", [0.0, 0.4]),
        ("timestamp,duration_ms\n2026-11-21T10:00:00Z,8\n2026-11-21T10:00:02Z,9\n", [0.0, 2.0]),
    ],
)
def test_one_time_stamp_a_request(tmp_path: Path, text: str, expected: list[float]) -> None:
    """Seconds, milliseconds or moments of ISO 8601."""
    assert read_trace(written(tmp_path, text)).arrivals_s.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "colour,size\nred,3\n", "arrival_s\nsoon\n", "arrival_s\n"])
def test_unknown_tables_are_refused_with_what_was_expected(tmp_path: Path, text: str) -> None:
    """Other columns, a value that is not a time, no line at all."""
    with pytest.raises(TraceUnusable, match=r"[Ee]xpected|no invocation"):
        read_trace(written(tmp_path, text))


def test_unknown_function_is_refused_with_those_there_are(tmp_path: Path) -> None:
    """The busiest are named."""
    path = written(tmp_path, "function,arrival_s\na,1\nb,2\nb,3\n")
    with pytest.raises(TraceUnusable, match=r"busiest are: b, a"):
        read_trace(path, function="c")
