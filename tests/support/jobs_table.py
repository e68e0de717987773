"""The table of jobs, as DynamoDB's clients make it in tests."""

from __future__ import annotations

from typing import Any

from coldframe.jobs.dynamodb import DUE_INDEX

JOBS_TABLE = "jobs"
_TYPES = (("job", "S"), ("item", "S"), ("watch", "S"), ("due_s", "N"))


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
