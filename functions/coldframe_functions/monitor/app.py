"""The monitor function: reads the week's sketches and labels, and prints metrics. An hour has one round."""

import os
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import boto3
from botocore.config import Config

from coldframe.feedback.table import FeedbackTable
from coldframe.log_lines import plain_line
from coldframe.model.files import built_models, model_folder
from coldframe.monitoring.drift import Slot
from coldframe.monitoring.hours import HourTable, Reading, WeekReader
from coldframe.monitoring.reading import Label
from coldframe.monitoring.reference import load_references
from coldframe.monitoring.report import Report, make_reports, metrics_line

_RESERVED_MS = 30_000  # for the reports, once the lines are read


class _Context(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


def handler(event: Mapping[str, Any], context: _Context) -> dict[str, Any]:
    """One round. Prints a line of metrics for each model and head, and a line about the round.

    Raises boto3's errors and TableFails: the next round repeats what this one did not store.
    """
    environ, started_s = os.environ, time.monotonic()
    root = Path(environ["COLDFRAME_MODEL_DIR"])
    references = load_references(model_folder(root, name) for name in built_models(root))
    group = environ["LOG_GROUP"]
    table = HourTable(environ["HOURS_TABLE"], group, _client("dynamodb"))
    reading = WeekReader(_client("logs"), group, table, time.time).read(
        references, lambda: context.get_remaining_time_in_millis() < _RESERVED_MS
    )
    feedback = environ.get("FEEDBACK_TABLE", "")
    labels = list(_feedback(feedback).labels_for(reading.sketches)) if feedback else []
    slot: Slot = "day" if environ.get("SLOT") == "day" else "hour"
    reports = make_reports(reading.sketches, labels, references, slot=slot)
    for report in reports:
        metrics = metrics_line(report, environ["METRICS_NAMESPACE"], time.time())
        print(plain_line("monitor-metrics", started_s, **metrics))
    line = _line(reading, labels, reports)
    print(plain_line(started_s=started_s, **line))
    return line


def _feedback(table: str) -> FeedbackTable:
    return FeedbackTable(table, lambda: _client("dynamodb"), time.time)


def _line(reading: Reading, labels: Sequence[Label], reports: Sequence[Report]) -> dict[str, Any]:
    return {
        "event": "monitor",
        "texts": sum(report.texts for report in reports),
        "labels": len(labels),
        "drifted": [report.model for report in reports if report.drifted],
        "unreadable": reading.unreadable,
        "hours_read": reading.hours_read,
        "hours_left": reading.hours_left,
    }


@cache
def _client(service: str) -> Any:
    # A first round calls CloudWatch Logs more often than its quota allows, and slows down.
    return boto3.client(service, config=Config(retries={"mode": "adaptive", "total_max_attempts": 10}))
