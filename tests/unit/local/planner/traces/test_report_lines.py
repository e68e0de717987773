"""Logs with REPORT lines, in each form in which they are exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coldframe_local.planner.scenarios.timings import of_reports
from coldframe_local.planner.traces.read import read_trace
from coldframe_local.planner.traces.report_lines import read_reports
from coldframe_local.planner.traces.trace import TraceUnusable

FIELDS = "Duration: 8.50 ms\tBilled Duration: 9 ms\tMemory Size: 1769 MB\tMax Memory Used: 301 MB"
WARM = f"REPORT RequestId: 11111111-aaaa\t{FIELDS}"
COLD = f"REPORT RequestId: 22222222-bbbb\t{FIELDS}\tInit Duration: 500.00 ms"
JSON_COLD = {
    "time": "2026-11-21T10:00:01.000Z",
    "type": "platform.report",
    "record": {
        "metrics": {
            "durationMs": 8.5,
            "billedDurationMs": 509,
            "memorySizeMB": 1769,
            "maxMemoryUsedMB": 301,
            "initDurationMs": 500.0,
        }
    },
}
JSON_WARM = {
    **JSON_COLD,
    "time": "2026-11-21T10:00:05.000Z",
    "record": {"metrics": {"durationMs": 8.5, "memorySizeMB": 1769, "maxMemoryUsedMB": 300}},
}


def log_of(folder: Path, form: str) -> Path:
    path = folder / "function.log"
    stamps = ("2026-11-21T10:00:01.000Z", "2026-11-21T10:00:05.000Z")
    if form == "text":
        path.write_text(f"{stamps[0]}\t{COLD}\nsome other line\n{stamps[1]}\t{WARM}\n")
    elif form == "json":
        path.write_text(f"{json.dumps(JSON_COLD)}\n{json.dumps(JSON_WARM)}\n")
    else:
        times = (1_795_255_201_000, 1_795_255_205_000)
        events = [
            {"timestamp": time, "message": line} for time, line in zip(times, (COLD, WARM), strict=True)
        ]
        path.write_text(json.dumps({"events": events}, indent=2))
    return path


@pytest.mark.parametrize("form", ["text", "json", "aws logs"])
def test_arrivals_are_ends_less_duration_and_init(tmp_path: Path, form: str) -> None:
    """The cold call arrived 508.5 ms before its line, the warm one 8.5 ms before its own."""
    trace = read_trace(log_of(tmp_path, form))
    assert trace.arrivals_s.tolist() == pytest.approx([0.0, 4.0 + 0.5])
    assert trace.durations_s is not None
    assert trace.durations_s.tolist() == pytest.approx([0.0085, 0.0085])
    assert trace.inits_s == (0.5,)


def test_log_without_times_tells_durations_but_no_trace(tmp_path: Path) -> None:
    """What `coldframe up` prints by default has no times."""
    path = tmp_path / "function.log"
    path.write_text(f"{COLD}\n{WARM}\n")
    assert [report.init_s for report in read_reports(path)] == [0.5, 0.0]
    with pytest.raises(TraceUnusable, match="no time stamp"):
        read_trace(path)


def test_timings_by_memory_size(tmp_path: Path) -> None:
    """Warm durations and init phases go apart, and a smaller size is slower by its share of a vCPU."""
    path = tmp_path / "function.log"
    path.write_text(f"{COLD}\n{WARM}\n")
    measured = of_reports([path])
    assert measured.at(1769).durations_s == pytest.approx((0.0085,))
    assert measured.at(1769).inits_s == (0.5,)
    assert measured.at(884).durations_s[0] == pytest.approx(0.0085 * 1769 / 884)
    assert measured.at(3008).durations_s == pytest.approx((0.0085,))
    assert measured.peak_mb == 301


def test_log_without_reports_is_refused(tmp_path: Path) -> None:
    """The message says where the lines come from."""
    path = tmp_path / "function.log"
    path.write_text("hello\n")
    with pytest.raises(TraceUnusable, match="no REPORT line"):
        read_trace(path)
