"""A warming round with a forecast: reads metrics, decides how many environments to hold, and acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from coldframe.warming import table
from coldframe.warming.policy import SLOT_S
from coldframe.warming.record import KEPT_SLOTS, Record
from coldframe.warming.rounds import decide
from coldframe.warming.settings import Predicting

_SLOT = int(SLOT_S)
_READ_AGAIN = 2  # slots: a metric may arrive minutes late


class Clients(NamedTuple):
    """boto3's clients, and a function that pings. scaling: creates Application Auto Scaling's client.

    ping: sends a number of pings at once to a version, by its qualified name; returns their result.
    """

    lambda_: Any
    cloudwatch: Any
    dynamodb: Any
    scaling: Callable[[], Any]
    ping: Callable[[str, int], dict[str, Any]]


def hold(clients: Clients, settings: Predicting, now: datetime) -> dict[str, Any]:
    """One round. Returns its line for the log: its actions, and the reason.

    The record is written before the pings: of two concurrent warmers, the second does nothing.
    The level of provisioned concurrency is compared with AWS's in each round, so the next round repeats a
    failed
    call. Provisioned concurrency above the decision counts as spent.
    """
    slot, day = int(now.timestamp()) // _SLOT, f"{now:%Y-%m-%d}"
    record, state = table.read(clients.dynamodb, settings.table, settings.function)
    first = max(record.end - _READ_AGAIN, slot - KEPT_SLOTS) if record.peaks else slot - KEPT_SLOTS
    if record.end > slot:  # written by a wrong clock
        state, first = "new: its slots are in the future", slot - KEPT_SLOTS
        record = Record(revision=record.revision)
    peaks = _peaks(clients.cloudwatch, settings.function, settings.alias, first, slot)
    record = record.with_slots(first, peaks)
    spent_usd = record.spent_on(day)
    decision = decide(
        record.peaks, record.pinged, settings.ping, settings.provision, settings.guards, spent_usd
    )
    line: dict[str, Any] = {"prediction": "on", "state": state, **asdict(decision), "spent_usd": spent_usd}
    guaranteed = settings.guards.guaranteed > 0
    current = _provisioned(clients.lambda_, settings) if guaranteed or record.provisioned else 0
    beyond_usd = max(0, current - decision.provisioned) * settings.provision.idle_usd
    record = record.with_pings(slot, decision.pings).with_spent(day, decision.usd + beyond_usd)
    record = record.with_provisioned(max(current, decision.provisioned))
    try:
        table.write(clients.dynamodb, settings.table, settings.function, record, int(now.timestamp()))
    except table.Overtaken:
        return line | {"pings": 0, "reason": "another warmer has written the record", "skipped": True}
    if current != decision.provisioned:
        if guaranteed:
            _provision(clients.scaling(), settings, decision.provisioned, now)
        else:
            _release(clients.lambda_, settings)
    return line | {"skipped": not decision.pings} | _ping(clients, settings, decision.pings)


def _provisioned(client: Any, settings: Predicting) -> int:
    """Provisioned concurrency last requested from AWS. client: boto3's for Lambda."""
    try:
        answer = client.get_provisioned_concurrency_config(
            FunctionName=settings.function, Qualifier=settings.alias
        )
    except client.exceptions.ProvisionedConcurrencyConfigNotFoundException:
        return 0
    return int(answer["RequestedProvisionedConcurrentExecutions"])


def _release(client: Any, settings: Predicting) -> None:
    """Ends provisioned concurrency that an earlier setting has left: removes its scalable target."""
    client.delete_provisioned_concurrency_config(FunctionName=settings.function, Qualifier=settings.alias)


def _ping(clients: Clients, settings: Predicting, count: int) -> dict[str, Any]:
    if not count:
        return {}
    # To the version and not through the alias, whose metrics count requests.
    alias = clients.lambda_.get_alias(FunctionName=settings.function, Name=settings.alias)
    version = alias["FunctionVersion"]
    return {"version": version, **clients.ping(f"{settings.function}:{version}", count)}


def _peaks(client: Any, function: str, alias: str, first: int, end: int) -> list[int]:
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


def _provision(client: Any, settings: Predicting, count: int, now: datetime) -> None:
    """Sets the level by a scheduled action for the next minute; target tracking would never reach zero.

    https://docs.aws.amazon.com/autoscaling/application/userguide/scheduled-scaling-additional-cli-commands.html,
    read 2026-11-22
    """
    client.put_scheduled_action(
        ServiceNamespace="lambda",
        ScheduledActionName="warmer",
        ResourceId=f"function:{settings.function}:{settings.alias}",
        ScalableDimension="lambda:function:ProvisionedConcurrency",
        Schedule=f"at({now + timedelta(minutes=1):%Y-%m-%dT%H:%M:%S})",
        ScalableTargetAction={"MinCapacity": count, "MaxCapacity": count},
    )
