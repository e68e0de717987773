"""Sketches of a week, hour by hour: log lines are read once, and a table keeps the sums of whole hours.

Log lines are the truth. An hour that the table lacks is read from the log again, so a table that fails loses
nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from coldframe.monitoring.drift import WEEK_S
from coldframe.monitoring.reading import read_sketches
from coldframe.monitoring.reference import Reference
from coldframe.monitoring.report import Key, sketches_by_key
from coldframe.monitoring.sketch import Sketch

HOUR_S = 3600
PATTERN = '{ $.event = "sketch" }'
"""Filter pattern of CloudWatch Logs for lines with a sketch."""

_LATE_S = 600  # a line may come this late; until then its hour is not whole
_KEPT_S = 2 * WEEK_S
_DECODER = msgspec.json.Decoder(list[Sketch])


class Reading(NamedTuple):
    """Sketches of a week so far. unreadable: lines whose sketch cannot be used.

    hours_read: hours read from the log. hours_left: whole hours for which there was no time; another reading
    continues there.
    """

    sketches: list[Sketch]
    unreadable: int
    hours_read: int
    hours_left: int


class HourTable:
    """Sums of hours in a DynamoDB table with the keys `log_group` and `hour`.

    client: boto3's. boto3's errors pass: the next reading repeats what was not stored.
    """

    def __init__(self, table: str, log_group: str, client: Any) -> None:
        self._table = table
        self._log_group = log_group
        self._client = client

    def read(self, first: int, last: int) -> dict[int, list[Sketch]]:
        """Stored hours from number `first` to number `last`, both included."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="log_group = :group AND #hour BETWEEN :first AND :last",
            ExpressionAttributeNames={"#hour": "hour"},
            ExpressionAttributeValues={
                ":group": {"S": self._log_group},
                ":first": {"N": str(first)},
                ":last": {"N": str(last)},
            },
        )
        items = (item for page in pages for item in page["Items"])
        return {int(item["hour"]["N"]): _DECODER.decode(item["sketches"]["B"]) for item in items}

    def write(self, hour: int, sketches: Sequence[Sketch]) -> None:
        """Stores a whole hour. The same hour again has the same value."""
        item = {
            "log_group": {"S": self._log_group},
            "hour": {"N": str(hour)},
            "sketches": {"B": msgspec.json.encode(sketches)},
            "expires_at_s": {"N": str(int(hour * HOUR_S + _KEPT_S))},
        }
        self._client.put_item(TableName=self._table, Item=item)


class WeekReader:
    """Reads the present week of a log group. A week begins on Thursday, 00:00 UTC, as weeks since 1970 do.

    logs: boto3's client of CloudWatch Logs. now: seconds since 1970.
    """

    def __init__(self, logs: Any, log_group: str, table: HourTable, now: Callable[[], float]) -> None:
        self._logs = logs
        self._log_group = log_group
        self._table = table
        self._now = now

    def read(self, references: Mapping[Key, Reference], is_late: Callable[[], bool]) -> Reading:
        """Sums of each hour, oldest first. The present hour is read anew each time.

        is_late: whether the time is over.
        """
        now_s = self._now()
        first, present = int(now_s // WEEK_S * WEEK_S // HOUR_S), int(now_s // HOUR_S)
        stored = self._table.read(first, present)
        sketches = [sketch for sums in stored.values() for sketch in sums]
        missing = [hour for hour in range(first, present + 1) if hour not in stored]
        unreadable = 0
        for number, hour in enumerate(missing):
            if is_late():
                return Reading(sketches, unreadable, number, len(missing) - number)
            log = read_sketches(self._lines(hour))
            unreadable += log.unreadable
            sums = _sums(hour, log.sketches, references)
            sketches += sums
            if now_s >= (hour + 1) * HOUR_S + _LATE_S:
                self._table.write(hour, sums)
        return Reading(sketches, unreadable, len(missing), 0)

    def _lines(self, hour: int) -> Iterator[str]:
        pages = self._logs.get_paginator("filter_log_events").paginate(
            logGroupName=self._log_group,
            startTime=hour * HOUR_S * 1000,
            endTime=(hour + 1) * HOUR_S * 1000 - 1,
            filterPattern=PATTERN,
        )
        return (event["message"] for page in pages for event in page["events"])


def _sums(hour: int, sketches: Sequence[Sketch], references: Mapping[Key, Reference]) -> list[Sketch]:
    """One sketch for each model and head: the sum of distinct ones, which ends within the hour."""
    return [_sum(hour, rows) for rows in sketches_by_key(sketches, references).values()]


def _sum(hour: int, rows: Sequence[Sketch]) -> Sketch:
    last_s = (hour + 1) * HOUR_S - 1.0
    end_s = min(max(float(hour * HOUR_S), *(row.end_s for row in rows)), last_s)
    counts = reduce(add, (row.counts for row in rows))
    start_s = min(end_s, *(row.start_s for row in rows))
    return replace(rows[0], environment="all", sequence=hour, start_s=start_s, end_s=end_s, counts=counts)
