"""Batches of messages, and what answers say of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coldframe_local.emulator.lambda_service.event_sources.sqs import (
    PAYLOAD_BYTES,
    Batch,
    SqsMapping,
    failed_ids,
)

MAPPING = SqsMapping("F", None, "q", "arn:aws:sqs:us-east-1:1:q", "us-east-1", batch_size=3)
IDS = ["a", "b", "c"]


def message(name: str, body: str = "x") -> dict[str, Any]:
    return {
        "MessageId": name,
        "ReceiptHandle": f"handle of {name}",
        "Body": body,
        "Attributes": {"SenderId": "s"},
        "MessageAttributes": {"n": {"StringValue": "1", "DataType": "Number"}},
    }


def test_batch() -> None:
    """A batch has as many messages as its mapping says, in the form of Lambda's event."""
    batch = Batch(MAPPING)
    assert [batch.takes(message(name)) for name in "abcd"] == [True, True, True, False]
    assert batch.is_full
    records = json.loads(batch.event())["Records"]
    assert [record["messageId"] for record in records] == IDS
    assert records[0] == {
        "messageId": "a",
        "receiptHandle": "handle of a",
        "body": "x",
        "attributes": {"SenderId": "s"},
        "messageAttributes": {
            "n": {"stringValue": "1", "dataType": "Number", "stringListValues": [], "binaryListValues": []}
        },
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:1:q",
        "awsRegion": "us-east-1",
    }


def test_payload_limit() -> None:
    """A batch is never larger than Lambda's payload; a message alone always goes."""
    batch = Batch(SqsMapping("F", None, "q", "a", "r", batch_size=100))
    taken = 0
    while batch.takes(message(str(taken), "x" * 1_000_000)):
        taken += 1
    assert taken == 6
    assert len(batch.event()) <= PAYLOAD_BYTES
    assert Batch(MAPPING).takes(message("large", "x" * (PAYLOAD_BYTES + 1)))


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (None, ""),
        (b"null", ""),
        (b"{}", ""),
        (b'{"batchItemFailures": null}', ""),
        (b'{"batchItemFailures": []}', ""),
        (b'{"batchItemFailures": [{"itemIdentifier": "b"}]}', "b"),
        (b'{"batchItemFailures": [{"itemIdentifier": "b"}, {"itemIdentifier": "zz"}]}', "abc"),
        (b'{"batchItemFailures": [{"itemIdentifier": ""}]}', "abc"),
        (b'{"batchItemFailures": [{"itemIdentifier": null}]}', "abc"),
        (b'{"batchItemFailures": [{"other": "b"}]}', "abc"),
        (b'{"batchItemFailures": "b"}', "abc"),
        (b'"text"', "abc"),
        (b"no json", "abc"),
    ],
)
def test_answers(answer: bytes | None, failed: str) -> None:
    """An answer is read as Lambda documents it; without partial failures it is not read."""
    assert failed_ids(answer, IDS, reports_failures=True) == set(failed)
    assert failed_ids(answer, IDS, reports_failures=False) == set()
