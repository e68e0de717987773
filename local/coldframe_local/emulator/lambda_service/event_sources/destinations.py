"""Destinations of asynchronous events: their settings, and the record of an event's end. Pure.

Source: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html and
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html, read 2026-11-21.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.report import InvocationStatus


class Condition(StrEnum):
    """Why nothing more is done for an event, in Lambda's words."""

    SUCCESS = "Success"
    RETRIES_EXHAUSTED = "RetriesExhausted"
    EVENT_AGE_EXCEEDED = "EventAgeExceeded"
    ZERO_RESERVED_CONCURRENCY = "ZeroReservedConcurrency"


@dataclass(frozen=True, slots=True)
class EventInvokeConfig:
    """How asynchronous events of a function, version or alias are treated.

    maximum_retry_attempts: after function errors. maximum_age_s: an event that would be older at its next
    attempt gets none. on_success, on_failure: ARNs of where its record goes; None: nowhere.
    """

    maximum_retry_attempts: int = 2
    maximum_age_s: float = 6 * 3600.0
    on_success: str | None = None
    on_failure: str | None = None

    def destination(self, condition: Condition) -> str | None:
        """Where the record of an event goes that ended so."""
        return self.on_success if condition is Condition.SUCCESS else self.on_failure


class NotSent(Exception):
    """A record did not reach its destination; the text says why, and holds nothing of the record."""


def destination_record(
    condition: Condition,
    arn: str,
    event: bytes,
    last: Invoked | None,
    invocations: int,
    request_id: str,
    timestamp: str,
) -> bytes:
    """The record of an event, as JSON; it holds the event itself, and what the function made of it.

    arn: of the function, with the qualifier it was called by. event: JSON. last: result of the last of
    invocations ended; None when there was none. timestamp: ISO 8601.
    """
    record: dict[str, object] = {
        "version": "1.0",
        "timestamp": timestamp,
        "requestContext": {
            "requestId": request_id,
            "functionArn": arn,
            "condition": condition,
            "approximateInvokeCount": invocations,
        },
        "requestPayload": msgspec.Raw(event),
    }
    if last is not None:
        succeeded = last.outcome.status is InvocationStatus.SUCCESS
        record["responseContext"] = {
            "statusCode": 200,
            "executedVersion": last.executed_version,
            **({} if succeeded else {"functionError": "Unhandled"}),
        }
        record["responsePayload"] = msgspec.Raw(last.outcome.payload or b"null")
    return msgspec.json.encode(record)
