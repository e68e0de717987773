"""A trace from a file, whatever its form."""

from __future__ import annotations

from pathlib import Path

from coldframe_local.planner.traces.report_lines import trace_of_reports
from coldframe_local.planner.traces.tables import is_table, read_table
from coldframe_local.planner.traces.trace import Trace, TraceUnusable


def read_trace(
    path: Path, *, function: str | None = None, durations: Path | None = None, seed: int = 0
) -> Trace:
    """CSV tables by their columns (`tables`), anything else as a log (`report_lines`).

    function: the one whose invocations are wanted; None: all of them. durations, seed: see `read_table`.
    Raises TraceUnusable, which says what was expected.
    """
    if not path.is_file():
        raise TraceUnusable(f"{path} is not a file. Name a CSV file, or a log with REPORT lines.")
    if not is_table(path):
        return trace_of_reports(path)
    trace = read_table(path, durations, seed, function)
    return trace if function is None else trace.only(function)
