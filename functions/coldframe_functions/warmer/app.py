"""The warmer function: keeps environments warm by pings, when traffic does not.

It pings at a fixed rate (`keep_warm`), or by a forecast of the traffic (`coldframe.warming.round`).
"""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from coldframe.capacity.prices import PRICES
from coldframe.coldstart.pings import invoker, ping_environments
from coldframe.log_lines import plain_line
from coldframe.warming.round import Clients, run_round
from coldframe.warming.settings import predicting

_WINDOW = timedelta(minutes=5)  # the schedule's, so that no traffic is counted for two rounds


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """One round. Returns its result, and prints it as its log line."""
    environ, started_s = os.environ, time.monotonic()
    if (settings := predicting(environ, PRICES)) is not None:
        report = run_round(_all_clients(settings.guards.most), settings, datetime.now(UTC))
        print(plain_line("warming", started_s, **report))
        return report
    lambda_client, cloudwatch = _clients(int(environ["WARM_ENVIRONMENTS"]))
    report = keep_warm(
        lambda_client,
        cloudwatch,
        environ["FUNCTION_NAME"],
        environ["ALIAS"],
        int(environ["WARM_ENVIRONMENTS"]),
    )
    print(plain_line("warming", started_s, **report))
    return report


def keep_warm(
    lambda_client: Any,
    cloudwatch: Any,
    function: str,
    alias: str,
    environments: int,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> dict[str, Any]:
    """Pings, unless requests alone kept as many environments busy at once since the last round."""
    busy = _concurrency(cloudwatch, function, alias, now())
    if busy >= environments:
        return {"wanted": environments, "skipped": True, "busy": busy}
    # To the version and not through the alias, whose metrics count requests: `busy` and the alarms read them.
    version = lambda_client.get_alias(FunctionName=function, Name=alias)["FunctionVersion"]
    report = ping_environments(invoker(lambda_client, f"{function}:{version}"), environments)
    return {"wanted": environments, "skipped": False, "busy": busy, "version": version, **report._asdict()}


def _concurrency(cloudwatch: Any, function: str, alias: str, now: datetime) -> int:
    """Recent peak of concurrent requests through the alias."""
    points = cloudwatch.get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="ConcurrentExecutions",
        Dimensions=[
            {"Name": "FunctionName", "Value": function},
            {"Name": "Resource", "Value": f"{function}:{alias}"},
        ],
        StartTime=now - _WINDOW,
        EndTime=now,
        Period=60,
        Statistics=["Maximum"],
    )["Datapoints"]
    return max((int(point["Maximum"]) for point in points), default=0)


@cache
def _clients(connections: int) -> tuple[Any, Any]:
    import boto3
    from botocore.config import Config

    # A ping is never repeated: a second one would hold a second environment.
    patient = Config(max_pool_connections=connections, read_timeout=55, retries={"total_max_attempts": 1})
    return boto3.client("lambda", config=patient), boto3.client("cloudwatch")


@cache
def _all_clients(connections: int) -> Clients:
    import boto3

    lambda_client, cloudwatch = _clients(max(1, connections))
    return Clients(
        lambda_client,
        cloudwatch,
        boto3.client("dynamodb"),
        cache(lambda: boto3.client("application-autoscaling")),
        lambda version, count: ping_environments(invoker(lambda_client, version), count)._asdict(),
    )
