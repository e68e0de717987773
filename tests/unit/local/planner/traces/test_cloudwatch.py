"""The traffic of a function from CloudWatch's metrics, through boto3."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from moto import mock_aws

from coldframe_local.planner.traces.cloudwatch import from_cloudwatch
from coldframe_local.planner.traces.trace import TraceUnusable

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """CloudWatch by moto, of no account."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        client = boto3.client("cloudwatch", region_name="us-east-1")
        client.meta.events.register("provide-client-params.cloudwatch.GetMetricData", without_percentiles)
        yield client


def without_percentiles(params: dict[str, Any], **_: object) -> dict[str, Any]:
    """moto computes none (5.2): it is asked for the nearest statistic that it knows."""
    known = {"p50": "Average", "p99": "Maximum"}
    queries = [
        {
            **query,
            "MetricStat": {
                **query["MetricStat"],
                "Stat": known.get(query["MetricStat"]["Stat"], query["MetricStat"]["Stat"]),
            },
        }
        for query in params["MetricDataQueries"]
    ]
    return {**params, "MetricDataQueries": queries}


def put(client: Any, metric: str, minutes_ago: float, *values: float) -> None:
    client.put_metric_data(
        Namespace="AWS/Lambda",
        MetricData=[
            {
                "MetricName": metric,
                "Dimensions": [{"Name": "FunctionName", "Value": "topics"}],
                "Timestamp": NOW - timedelta(minutes=minutes_ago),
                "Value": value,
            }
            for value in values
        ],
    )


def test_invocations_and_durations_of_each_minute(client: Any) -> None:
    """Every minute has its count, and durations between its least and its most, over several calls."""
    put(client, "Invocations", 10, 40)
    put(client, "Duration", 10, 6.0, 8.0, 10.0)
    put(client, "Invocations", 6 * 24 * 60, 3)
    put(client, "Duration", 6 * 24 * 60, 100.0)
    trace = from_cloudwatch("topics", 7, 0, client, NOW)
    minutes, counts = np.unique(trace.arrivals_s // 60, return_counts=True)
    assert counts.tolist() == [3, 40]
    assert minutes.tolist() == [24 * 60, 7 * 24 * 60 - 10]
    assert trace.durations_s is not None
    assert trace.durations_s[:3].tolist() == pytest.approx([0.1] * 3)
    assert 0.006 <= trace.durations_s[3:].min() < trace.durations_s[3:].max() <= 0.010
    assert trace.span_s == 7 * 86_400


def test_missing_region_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a region or credentials, the error names what to check."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(TraceUnusable, match=r"region.*AWS_REGION"):
        from_cloudwatch("topics", 1, 0)


def test_function_without_invocations_is_refused(client: Any) -> None:
    """The message says what to look at."""
    with pytest.raises(TraceUnusable, match="AWS_REGION"):
        from_cloudwatch("topics", 1, 0, client, NOW)
