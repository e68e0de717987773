"""The traffic of a function that runs on AWS, from the metrics that Lambda keeps of it.

Source: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html, read 2026-11-21.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from coldframe.progress import Progress
from coldframe_local.planner.traces.tables import spread
from coldframe_local.planner.traces.trace import Trace, TraceUnusable, as_trace

MOST_DAYS = 15  # CloudWatch keeps minutes for 15 days
_DAYS_A_CALL = 3  # 4,320 minutes of five metrics: below the 100,800 values of a call
_STATISTICS = (("Minimum", 0.0), ("p50", 0.5), ("p99", 0.99), ("Maximum", 1.0))


def from_cloudwatch(
    name: str, days: int, seed: int, client: Any = None, now: datetime | None = None
) -> Trace:
    """Invocations by the minute, anywhere in it, and durations between the quantiles of each minute.

    client: of CloudWatch; None makes one of the environment's credentials.
    Raises TraceUnusable when the function was not invoked, or CloudWatch cannot be asked.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return _trace(name, days, seed, client or _client(), now)
    except (BotoCoreError, ClientError) as exc:
        raise TraceUnusable(
            f"CloudWatch cannot be asked: {exc} Check AWS_REGION, your credentials, and that you may "
            "cloudwatch:GetMetricData."
        ) from exc


def _client() -> Any:
    import boto3

    return boto3.client("cloudwatch")


def _trace(name: str, days: int, seed: int, client: Any, now: datetime | None) -> Trace:
    end = (now or datetime.now(UTC)).replace(second=0, microsecond=0)
    start = end - timedelta(days=days)
    minutes = days * 24 * 60
    counts = np.zeros(minutes, np.int64)
    quantiles_ms = np.zeros((len(_STATISTICS), minutes))
    for first in Progress(range(0, days, _DAYS_A_CALL), desc="reading CloudWatch", unit="call", leave=False):
        since = start + timedelta(days=first)
        until = min(end, since + timedelta(days=_DAYS_A_CALL))
        for identity, minute, value in _points(client, name, since, until, start):
            if identity == "invocations":
                counts[minute] = round(value)
            else:
                quantiles_ms[int(identity.removeprefix("duration")), minute] = value
    if not counts.any():
        raise TraceUnusable(
            f"CloudWatch knows of no invocation of {name!r} in the last {days} days. Check the name and "
            "AWS_REGION, and that you may cloudwatch:GetMetricData."
        )
    arrivals_s = spread(counts, seed)
    of_minute = np.minimum(arrivals_s // 60, minutes - 1).astype(np.int64)
    durations_s = _between(quantiles_ms[:, of_minute], seed + 1) / 1e3
    return as_trace(arrivals_s, [name], durations_s, span_s=minutes * 60.0)


def _points(
    client: Any, name: str, since: datetime, until: datetime, start: datetime
) -> list[tuple[str, int, float]]:
    """(query, minute from the start, value) of every data point."""
    queries = [_query("invocations", "Invocations", "Sum", name)]
    queries += [
        _query(f"duration{number}", "Duration", statistic, name)
        for number, (statistic, _) in enumerate(_STATISTICS)
    ]
    pages = client.get_paginator("get_metric_data").paginate(
        StartTime=since, EndTime=until, MetricDataQueries=queries
    )
    return [
        (result["Id"], int((moment - start).total_seconds() // 60), value)
        for page in pages
        for result in page["MetricDataResults"]
        for moment, value in zip(result["Timestamps"], result["Values"], strict=True)
    ]


def _query(identity: str, metric: str, statistic: str, name: str) -> dict[str, Any]:
    return {
        "Id": identity,
        "MetricStat": {
            "Metric": {
                "Namespace": "AWS/Lambda",
                "MetricName": metric,
                "Dimensions": [{"Name": "FunctionName", "Value": name}],
            },
            "Period": 60,
            "Stat": statistic,
        },
    }


def _between(quantiles: Any, seed: int) -> Any:
    """One draw for each column, with straight lines between its quantiles."""
    shares = np.array([share for _, share in _STATISTICS])
    uniform = np.random.default_rng(seed).random(quantiles.shape[1])
    upper = np.clip(np.searchsorted(shares, uniform, side="right"), 1, len(shares) - 1)
    columns = np.arange(quantiles.shape[1])
    low, high = quantiles[upper - 1, columns], quantiles[upper, columns]
    return low + (high - low) * (uniform - shares[upper - 1]) / (shares[upper] - shares[upper - 1])
