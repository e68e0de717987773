"""A table of feedback in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

_KEYS = (("day", "HASH"), ("nonce", "RANGE"))


@pytest.fixture
def client() -> Iterator[Any]:
    """A client of DynamoDB in memory, with an empty table."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        with mock_aws():
            client = boto3.client("dynamodb")
            client.create_table(
                TableName="feedback",
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in _KEYS],
                KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in _KEYS],
            )
            yield client
