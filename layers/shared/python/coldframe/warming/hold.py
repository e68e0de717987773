"""A round that predicts: what the metrics say, what to hold, and what was done."""

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
    """boto3's, and how to ping. scaling: Application Auto Scaling's, made when it is needed.

    ping: so many environments of a version at once, by its qualified name; returns what was found.
    """

    lambda_: Any
    cloudwatch: Any
    dynamodb: Any
    scaling: Callable[[], Any]
    ping: Callable[[str, int], dict[str, Any]]


def hold(clients: Clients, settings: Predicting, now: datetime) -> dict[str, Any]:
    """One round. Returns its line for the log: what it did, and for what reason.

    The record is written before anything is pinged: of two warmers at once, the second one does nothing.
    The level of provisioned concurrency is compared with AWS's in each round, so a call that failed is
    repeated by the next round. A level that is held beyond the decision counts as spent.
    """
    slot, day = int(now.timestamp()) // _SLOT, f"{now:%Y-%m-%d}"
    record, state = table.read(clients.dynamodb, settings.table, settings.function)
    first = max(record.end - _READ_AGAIN, slot - KEPT_SLOTS) if record.peaks else slot - KEPT_SLOTS
    if record.end > slot:  # of a clock that was wrong
        state, first = "new: it was of the future", slot - KEPT_SLOTS
        record = Record(revision=record.revision)
    peaks = _peaks(clients.cloudwatch, settings.function, settings.alias, first, slot)
    record = record.with_slots(first, peaks)
    spent_usd = record.spent_on(day)
    decision = decide(
        record.peaks, record.pinged, settings.ping, settings.provision, settings.guards, spent_usd
    )
    line: dict[str, Any] = {"prediction": "on", "state": state, **asdict(decision), "spent_usd": spent_usd}
    guaranteed = settings.guards.guaranteed > 0
    held = _provisioned(clients.lambda_, settings) if guaranteed or record.provisioned else 0
    beyond_usd = max(0, held - decision.provisioned) * settings.provision.idle_usd
    record = record.with_pings(slot, decision.pings).with_spent(day, decision.usd + beyond_usd)
    record = record.with_provisioned(max(held, decision.provisioned))
    try:
        table.write(clients.dynamodb, settings.table, settings.function, record, int(now.timestamp()))
    except table.Overtaken:
        return line | {"pings": 0, "reason": "another warmer is at it", "skipped": True}
    if held != decision.provisioned:
        if guaranteed:
            _provision(clients.scaling(), settings, decision.provisioned, now)
        else:
            _release(clients.lambda_, settings)
    return line | {"skipped": not decision.pings} | _ping(clients, settings, decision.pings)


def _provisioned(client: Any, settings: Predicting) -> int:
    """Provisioned concurrency that AWS was last asked for. client: boto3's of Lambda."""
    try:
        found = client.get_provisioned_concurrency_config(
            FunctionName=settings.function, Qualifier=settings.alias
        )
    except client.exceptions.ProvisionedConcurrencyConfigNotFoundException:
        return 0
    return int(found["RequestedProvisionedConcurrentExecutions"])


def _release(client: Any, settings: Predicting) -> None:
    """Ends provisioned concurrency that an earlier setting has left: its scalable target is gone."""
    client.delete_provisioned_concurrency_config(FunctionName=settings.function, Qualifier=settings.alias)


def _ping(clients: Clients, settings: Predicting, count: int) -> dict[str, Any]:
    if not count:
        return {}
    # To the version and not through the alias, whose metrics are for requests.
    alias = clients.lambda_.get_alias(FunctionName=settings.function, Name=settings.alias)
    version = alias["FunctionVersion"]
    return {"version": version, **clients.ping(f"{settings.function}:{version}", count)}


def _peaks(client: Any, function: str, alias: str, first: int, end: int) -> list[int]:
    """The most requests at once in each slot from `first` on, by one call of CloudWatch."""
    found = client.get_metric_data(
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
    for result in found:
        for moment, value in zip(result["Timestamps"], result["Values"], strict=True):
            place = int(moment.timestamp()) // _SLOT - first
            if 0 <= place < len(peaks):
                peaks[place] = max(peaks[place], int(value))
    return peaks


def _provision(client: Any, settings: Predicting, count: int, now: datetime) -> None:
    """A scheduled action for the next minute. Target tracking never reaches zero; a scheduled action does.

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
