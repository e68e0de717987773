"""CloudWatch Logs for boto3: the lines of functions, filtered by one field of JSON or not at all.

https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html (2026-11-25).
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

from coldframe.capacity.limits import LOG_EVENTS
from coldframe_local.emulator.aws_api.aws_json import AwsJson, Refused
from coldframe_local.emulator.lambda_service.telemetry.log_groups import LogEvent, LogGroups

PATH = "/_aws/logs"

_PATTERN = re.compile(r'\{ *\$\.(\w+) *= *"([^"*]*)" *\}')
_LATEST_MS = 2**62


def logs(groups: LogGroups) -> AwsJson:
    """Handler of the requests for `PATH`."""

    async def filter_log_events(parameters: dict[str, Any]) -> dict[str, Any]:
        return _filtered(groups, parameters)

    return AwsJson("CloudWatch Logs", {"FilterLogEvents": filter_log_events})


def _filtered(groups: LogGroups, parameters: dict[str, Any]) -> dict[str, Any]:
    """One page of the events of a group."""
    group = parameters["logGroupName"]
    if group not in groups:
        raise Refused("ResourceNotFoundException", "The specified log group does not exist.")
    pattern, limit = parameters.get("filterPattern", ""), int(parameters.get("limit", LOG_EVENTS.value))
    field = _PATTERN.fullmatch(pattern)
    if pattern and field is None:
        raise Refused(
            "InvalidParameterException",
            f'The filter pattern is {pattern!r}, expected {{ $.FIELD = "VALUE" }}. Change it.',
        )
    after = int(parameters.get("nextToken", 0))
    start_ms, end_ms = int(parameters.get("startTime", 0)), int(parameters.get("endTime", _LATEST_MS))
    events = (
        event
        for event in groups.events(group, start_ms, end_ms)
        if event.number > after and (field is None or _has(event.message, field[1], field[2]))
    )
    page = list(islice(events, limit + 1))
    token = {"nextToken": str(page[limit - 1].number)} if len(page) > limit else {}
    return {"events": [_event(event) for event in page[:limit]], "searchedLogStreams": [], **token}


def _has(message: str, name: str, value: str) -> bool:
    """Whether a line is a JSON object with this value."""
    if not message.startswith("{"):
        return False
    try:
        content = json.loads(message)
    except ValueError:
        return False
    return isinstance(content, dict) and content.get(name) == value


def _event(event: LogEvent) -> dict[str, Any]:
    return {
        "eventId": str(event.number),
        "timestamp": event.at_ms,
        "ingestionTime": event.at_ms,
        "message": event.message,
    }
