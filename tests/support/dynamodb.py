"""DynamoDB in memory, with empty tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from moto import mock_aws

from coldframe.jobs.dynamodb import DUE_INDEX

JOBS_TABLE = "jobs"
_TYPES = (("job", "S"), ("item", "S"), ("watch", "S"), ("due_s", "N"))


@contextmanager
def dynamodb_in_memory() -> Iterator[Any]:
    """boto3's client, until the end of the `with` block."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        with mock_aws():
            yield boto3.client("dynamodb")


def create_table(client: Any, name: str, partition_key: str, sort_key: str) -> None:
    """A table with two keys, both strings."""
    keys = {partition_key: "HASH", sort_key: "RANGE"}
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
    )


def create_jobs_table(dynamodb: Any) -> None:
    """By job and item, with the index of what is due. dynamodb: a boto3 client."""
    dynamodb.create_table(
        TableName=JOBS_TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in _TYPES],
        KeySchema=_schema("job", "item"),
        GlobalSecondaryIndexes=[
            {
                "IndexName": DUE_INDEX,
                "KeySchema": _schema("watch", "due_s"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )


def _schema(first: str, second: str) -> list[dict[str, str]]:
    return [{"AttributeName": first, "KeyType": "HASH"}, {"AttributeName": second, "KeyType": "RANGE"}]
