"""A warming round with a forecast: reads metrics, decides how many environments to hold, and acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from coldframe.warming import dynamodb_record
from coldframe.warming.cloudwatch_peaks import peaks_by_slot
from coldframe.warming.decision import decide
from coldframe.warming.policy import SLOT_S
from coldframe.warming.provision import provisioned_level, release, schedule_level
from coldframe.warming.record import KEPT_SLOTS, Record
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


def run_round(clients: Clients, settings: Predicting, now: datetime) -> dict[str, Any]:
    """One round. Returns its line for the log: its actions, and the reason.

    The record is written before the pings: of two concurrent warmers, the second does nothing.
    The level of provisioned concurrency is compared with AWS's in each round, so the next round repeats a
    failed call. Provisioned concurrency above the decision counts as spent.
    """
    slot, day = int(now.timestamp()) // _SLOT, f"{now:%Y-%m-%d}"
    record, state = dynamodb_record.read(clients.dynamodb, settings.table, settings.function)
    first = max(record.end - _READ_AGAIN, slot - KEPT_SLOTS) if record.peaks else slot - KEPT_SLOTS
    if record.end > slot:  # written by a wrong clock
        state, first = "new: its slots are in the future", slot - KEPT_SLOTS
        record = Record(revision=record.revision)
    peaks = peaks_by_slot(clients.cloudwatch, settings.function, settings.alias, first, slot)
    record = record.with_slots(first, peaks)
    spent_usd = record.spent_on(day)
    decision = decide(
        record.peaks, record.pinged, settings.ping, settings.provision, settings.guards, spent_usd
    )
    line: dict[str, Any] = {"prediction": "on", "state": state, **asdict(decision), "spent_usd": spent_usd}
    guaranteed = settings.guards.guaranteed > 0
    current = provisioned_level(clients.lambda_, settings) if guaranteed or record.provisioned else 0
    beyond_usd = max(0, current - decision.provisioned) * settings.provision.idle_usd
    record = record.with_pings(slot, decision.pings).with_spent(day, decision.usd + beyond_usd)
    record = record.with_provisioned(max(current, decision.provisioned))
    try:
        dynamodb_record.write(
            clients.dynamodb, settings.table, settings.function, record, int(now.timestamp())
        )
    except dynamodb_record.Overtaken:
        return line | {"pings": 0, "reason": "another warmer has written the record", "skipped": True}
    if current != decision.provisioned:
        if guaranteed:
            schedule_level(clients.scaling(), settings, decision.provisioned, now)
        else:
            release(clients.lambda_, settings)
    return line | {"skipped": not decision.pings} | _ping(clients, settings, decision.pings)


def _ping(clients: Clients, settings: Predicting, count: int) -> dict[str, Any]:
    if not count:
        return {}
    # To the version and not through the alias, whose metrics count requests.
    alias = clients.lambda_.get_alias(FunctionName=settings.function, Name=settings.alias)
    version = alias["FunctionVersion"]
    return {"version": version, **clients.ping(f"{settings.function}:{version}", count)}
