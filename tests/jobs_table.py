"""The table of jobs, as DynamoDB's clients make it in tests."""

from __future__ import annotations

from typing import Any

JOBS_TABLE = "jobs"
_KEYS = (("job", "HASH"), ("item", "RANGE"))


def create_jobs_table(dynamodb: Any, **more: Any) -> None:
    """By job and item, with `more` of CreateTable's parameters. dynamodb: a boto3 client."""
    dynamodb.create_table(
        TableName=JOBS_TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in _KEYS],
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in _KEYS],
        **more,
    )
