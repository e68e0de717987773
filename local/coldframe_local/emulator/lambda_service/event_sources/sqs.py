"""An SQS queue that invokes a function: the mapping, the event that it sends, and what the answer says. Pure.

Source: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html and
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html, read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from coldframe.capacity import limits

REPORT_FAILURES = "ReportBatchItemFailures"
# Of a synchronous invocation.
PAYLOAD_BYTES = limits.PAYLOAD.value
_ENVELOPE_BYTES = len(b'{"Records": []}')
_ATTRIBUTES = ("stringValue", "binaryValue", "dataType")


@dataclass(frozen=True, slots=True)
class SqsMapping:
    """A queue that is read for a function.

    queue: its name; arn: its ARN. window_s: how long a batch is gathered. maximum_concurrency: batches at
    once; None: Lambda's own limit. reports_failures: the answer names the messages that failed.
    visibility_s: how long a message stays hidden after it was received.
    """

    function: str
    qualifier: str | None
    queue: str
    arn: str
    region: str
    batch_size: int = 10
    window_s: float = 0.0
    maximum_concurrency: int | None = None
    reports_failures: bool = False
    visibility_s: float = 30.0

    @property
    def is_fifo(self) -> bool:
        """Whether messages of a group come in order, one batch after the other."""
        return self.queue.endswith(".fifo")


Message = Mapping[str, Any]
"""As boto3's `receive_message` gives it."""


def record_of(message: Message, mapping: SqsMapping) -> bytes:
    """A message as an element of `Records`, in JSON."""
    attributes = {
        name: {_lower(key): value for key, value in attribute.items() if _lower(key) in _ATTRIBUTES}
        | {"stringListValues": [], "binaryListValues": []}
        for name, attribute in message.get("MessageAttributes", {}).items()
    }
    return msgspec.json.encode(
        {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message.get("Attributes", {}),
            "messageAttributes": attributes,
            "md5OfBody": message.get("MD5OfBody", ""),
            "eventSource": "aws:sqs",
            "eventSourceARN": mapping.arn,
            "awsRegion": mapping.region,
        }
    )


def _lower(key: str) -> str:
    return key[:1].lower() + key[1:]


def event_of(records: Sequence[bytes]) -> bytes:
    """The event of a batch."""
    return b'{"Records":[' + b",".join(records) + b"]}"


class Batch:
    """Messages that are gathered for one invocation: as many as the mapping says, 6 MB at most."""

    def __init__(self, mapping: SqsMapping) -> None:
        self._mapping = mapping
        self._records: list[bytes] = []
        self._bytes = _ENVELOPE_BYTES
        self.messages: list[Message] = []

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def is_full(self) -> bool:
        """Whether as many are there as the mapping says."""
        return len(self.messages) >= self._mapping.batch_size

    def takes(self, message: Message) -> bool:
        """Adds a message; False where it does not fit any more. A first one always does."""
        record = record_of(message, self._mapping)
        if self.is_full or (self.messages and self._bytes + len(record) + 1 > PAYLOAD_BYTES):
            return False
        self._records.append(record)
        self._bytes += len(record) + 1
        self.messages.append(message)
        return True

    def event(self) -> bytes:
        """Event for the function."""
        return event_of(self._records)


def failed_ids(answer: bytes | None, message_ids: Sequence[str], reports_failures: bool) -> frozenset[str]:
    """Ids of the messages that failed, though the invocation succeeded.

    As Lambda reads the answer: without `ReportBatchItemFailures` none; an empty, null or missing list is
    none; a list that names what is not a message of the batch, or names nothing, is a failure of all.
    """
    everything = frozenset(message_ids)
    if not reports_failures or answer is None:
        return frozenset()
    try:
        result = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return everything
    if result is None:
        return frozenset()
    items = result.get("batchItemFailures") if isinstance(result, dict) else everything
    if items is None:
        return frozenset()
    if not isinstance(items, list):
        return everything
    identifiers = [item.get("itemIdentifier") if isinstance(item, dict) else None for item in items]
    if any(not isinstance(each, str) or each not in everything for each in identifiers):
        return everything
    return frozenset(each for each in identifiers if isinstance(each, str))
