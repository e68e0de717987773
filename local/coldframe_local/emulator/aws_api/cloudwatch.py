"""CloudWatch's metrics of Lambda for boto3, counted by the emulator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from coldframe_local.emulator.aws_api.aws_json import AwsJson, Refused
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.telemetry.minutes import MAXIMUM, SUMS

PATH = "/_aws/cloudwatch"

_NAMESPACE = "AWS/Lambda"
_MINUTE_S = 60
_STATISTICS: dict[str, Callable[[list[int]], float]] = {"Sum": sum, "Maximum": max}


def cloudwatch(service: LambdaService) -> AwsJson:
    """Handler of the requests for `PATH`."""
    metrics = _Metrics(service)
    return AwsJson(
        "CloudWatch",
        {"GetMetricData": metrics.get_metric_data, "GetMetricStatistics": metrics.get_metric_statistics},
    )


class _Metrics:
    def __init__(self, service: LambdaService) -> None:
        self._service = service

    async def get_metric_data(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """One result for each query, oldest values first unless asked otherwise."""
        falling = parameters.get("ScanBy", "TimestampDescending") == "TimestampDescending"
        results = []
        for query in parameters["MetricDataQueries"]:
            if "MetricStat" not in query:
                raise Refused(
                    "ValidationError", f"{query['Id']} has no MetricStat: expressions are not computed."
                )
            stat = query["MetricStat"]
            values = self._values(stat["Metric"], stat["Period"], stat["Stat"], parameters)
            values = values[::-1] if falling else values
            results.append(
                {
                    "Id": query["Id"],
                    "Label": query.get("Label", stat["Metric"]["MetricName"]),
                    "Timestamps": [at_s for at_s, _ in values],
                    "Values": [value for _, value in values],
                    "StatusCode": "Complete",
                }
            )
        return {"MetricDataResults": results, "Messages": []}

    async def get_metric_statistics(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """A data point for each period with traffic."""
        points: dict[int, dict[str, Any]] = defaultdict(dict)
        for statistic in parameters["Statistics"]:
            for at_s, value in self._values(parameters, parameters["Period"], statistic, parameters):
                points[at_s] |= {"Timestamp": at_s, statistic: value, "Unit": "Count"}
        return {"Label": parameters["MetricName"], "Datapoints": list(points.values())}

    def _values(
        self, metric: dict[str, Any], period_s: int, statistic: str, parameters: dict[str, Any]
    ) -> list[tuple[int, float]]:
        """(begin of a period, value), of periods with traffic only, in order."""
        name = metric["MetricName"]
        if metric["Namespace"] != _NAMESPACE or name not in (*SUMS, MAXIMUM):
            names = ", ".join((*SUMS, MAXIMUM))
            raise Refused("ValidationError", f"Of {_NAMESPACE} there are {names} here, and not {name}.")
        if statistic not in _STATISTICS:
            raise Refused("ValidationError", f"There are Sum and Maximum here, and not {statistic}.")
        if period_s < _MINUTE_S or period_s % _MINUTE_S:
            raise Refused("ValidationError", f"The period is {period_s} s, expected whole minutes.")
        dimensions = {one["Name"]: one["Value"] for one in metric.get("Dimensions", ())}
        function, _, qualifier = dimensions.get("Resource", dimensions["FunctionName"]).partition(":")
        if function not in [hosted.settings.name for hosted in self._service.functions]:
            return []
        # CloudWatch takes whole periods, from the one that the start is in.
        start_s, end_s = (
            _second(parameters["StartTime"]) // period_s * period_s,
            _second(parameters["EndTime"]),
        )
        whole = None if "Resource" not in dimensions else qualifier
        minutes = self._service.minutes(function).values(whole, name, start_s, end_s)
        periods: dict[int, list[int]] = defaultdict(list)
        for at_s, value in minutes:
            periods[at_s // period_s * period_s].append(value)
        return [(at_s, float(_STATISTICS[statistic](values))) for at_s, values in periods.items()]


def _second(moment: float | str) -> int:
    """Seconds since 1970 of a moment as boto3 sends it: a number, or ISO 8601."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment).astimezone(UTC).timestamp()
    return int(moment)
