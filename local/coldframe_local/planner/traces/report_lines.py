"""Lambda's own log: its REPORT lines tell durations, init phases and memory, and when each call ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coldframe_local.planner.traces.trace import Trace, TraceUnusable, as_trace

_REPORT = re.compile(r"REPORT RequestId: \S+\s+(?P<fields>.*)")
_FIELD = re.compile(r"(?P<name>[A-Z][A-Za-z ]*?): (?P<value>[0-9.]+) (?:ms|MB)")
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_EPOCH_MS = re.compile(r"\b1\d{12}\b")


@dataclass(frozen=True)
class Report:
    """One invocation. init_s: 0 for a warm one. peak_mb: the most memory that its environment ever held.
    ended_s: None where the line has no time stamp."""

    duration_s: float
    init_s: float
    memory_mb: int
    peak_mb: int
    ended_s: float | None


def read_reports(path: Path) -> list[Report]:
    """Every REPORT line of a log, as text, as Lambda's JSON, or as `aws logs filter-log-events` writes it.

    Raises TraceUnusable when there is none.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise TraceUnusable(f"{path} cannot be read: {exc}. Expected a log.") from exc
    reports = reports_in(text)
    if not reports:
        raise TraceUnusable(f"{path} has no REPORT line. Export the function's log group, or log in JSON.")
    return reports


def reports_in(text: str) -> list[Report]:
    """Every REPORT line of a text."""
    return [report for line, ended_s in _lines(text) if (report := _report(line, ended_s))]


def trace_of_reports(path: Path) -> Trace:
    """The trace that a log tells. Raises TraceUnusable for a log without times."""
    reports = read_reports(path)
    stamped = [(report, report.ended_s) for report in reports if report.ended_s is not None]
    if len(stamped) < len(reports):
        raise TraceUnusable(
            f"{len(reports) - len(stamped)} of the {len(reports)} REPORT lines of {path} have no time stamp. "
            "Export them with their times, or let the function log in JSON."
        )
    return as_trace(
        [ended_s - report.duration_s - report.init_s for report, ended_s in stamped],
        ["function"],
        [report.duration_s for report, _ in stamped],
        inits_s=[report.init_s for report, _ in stamped if report.init_s],
    )


def _lines(text: str) -> Iterator[tuple[str, float | None]]:
    """Each line or message, and when it was logged."""
    if text.lstrip().startswith("{") and '"events"' in text:
        for event in json.loads(text)["events"]:
            yield event["message"], event["timestamp"] / 1e3
        return
    for line in text.splitlines():
        if line.startswith("{"):
            logged = json.loads(line)
            if "message" in logged and "timestamp" in logged:
                yield logged["message"], logged["timestamp"] / 1e3
                continue
        yield line, None


def _report(line: str, ended_s: float | None) -> Report | None:
    if '"platform.report"' in line:
        return _json_report(json.loads(line[line.index("{") :]))
    match = _REPORT.search(line)
    if match is None:
        return None
    fields = {name: float(value) for name, value in _FIELD.findall(match["fields"])}
    return Report(
        fields["Duration"] / 1e3,
        # A restore is what an environment of SnapStart waits for instead of an init phase.
        fields.get("Init Duration", fields.get("Restore Duration", 0.0)) / 1e3,
        int(fields["Memory Size"]),
        int(fields["Max Memory Used"]),
        _stamp(line[: match.start()]) if ended_s is None else ended_s,
    )


def _json_report(event: dict[str, Any]) -> Report:
    metrics = event["record"]["metrics"]
    init_ms = metrics.get("initDurationMs", metrics.get("restoreDurationMs", 0.0))
    return Report(
        metrics["durationMs"] / 1e3,
        init_ms / 1e3,
        int(metrics["memorySizeMB"]),
        int(metrics["maxMemoryUsedMB"]),
        _moment(event["time"]),
    )


def _stamp(before: str) -> float | None:
    if iso := _ISO.search(before):
        return _moment(iso[0])
    epoch = _EPOCH_MS.search(before)
    return int(epoch[0]) / 1e3 if epoch else None


def _moment(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
