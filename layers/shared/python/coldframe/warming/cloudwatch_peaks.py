"""Peaks of a function's concurrency, slot by slot, from CloudWatch's metric."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from coldframe.warming.policy import SLOT_S

_SLOT = int(SLOT_S)


def peaks_by_slot(client: Any, function: str, alias: str, first: int, end: int) -> list[int]:
    """Highest concurrency in each slot from `first` on, by one call of CloudWatch."""
    results = client.get_metric_data(
        StartTime=datetime.fromtimestamp(first * _SLOT, UTC),
        EndTime=datetime.fromtimestamp(end * _SLOT, UTC),
        ScanBy="TimestampAscending",
        MetricDataQueries=[
            {
                "Id": "busy",
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/Lambda",
                        "MetricName": "ConcurrentExecutions",
                        "Dimensions": [
                            {"Name": "FunctionName", "Value": function},
                            {"Name": "Resource", "Value": f"{function}:{alias}"},
                        ],
                    },
                    "Period": _SLOT,
                    "Stat": "Maximum",
                },
            }
        ],
    )["MetricDataResults"]
    peaks = [0] * (end - first)
    for result in results:
        for moment, value in zip(result["Timestamps"], result["Values"], strict=True):
            place = int(moment.timestamp()) // _SLOT - first
            if 0 <= place < len(peaks):
                peaks[place] = max(peaks[place], int(value))
    return peaks
