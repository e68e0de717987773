"""Queries of one partition: the same answers as moto's own, without a look at other items."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws
from moto.dynamodb.models.table import Table

from local.stores.queries import query_by_partition
from tests.jobs_table import JOBS_TABLE, create_jobs_table

_KEYS = st.tuples(st.sampled_from("abc"), st.sampled_from([f"{kind}#{n}" for kind in "jp" for n in range(6)]))


@contextmanager
def table(keys: set[tuple[str, str]]) -> Iterator[Any]:
    """Items of these keys in a table by job and item, with an index by item. Moto's own queries come back."""
    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "query", Table.query)
        client = boto3.client("dynamodb", region_name="us-east-1")
        create_jobs_table(
            client,
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "by-item",
                    "KeySchema": [{"AttributeName": "item", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        )
        for job, item in sorted(keys):
            client.put_item(TableName=JOBS_TABLE, Item={"job": {"S": job}, "item": {"S": item}})
        yield client


def ask(dynamodb: Any, job: str, *, limit: int, forward: bool) -> list[Any]:
    """All pages of a query."""
    request: dict[str, Any] = {
        "TableName": JOBS_TABLE,
        "KeyConditionExpression": "job = :job AND begins_with(#item, :part)",
        "ExpressionAttributeNames": {"#item": "item"},
        "ExpressionAttributeValues": {":job": {"S": job}, ":part": {"S": "p#"}},
        "ScanIndexForward": forward,
        "Limit": limit,
    }
    pages = []
    while True:
        page = dynamodb.query(**request)
        pages.append([page["Items"], page["Count"], page["ScannedCount"]])
        if "LastEvaluatedKey" not in page:
            return pages
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


@settings(max_examples=25, deadline=None)
@given(st.sets(_KEYS), st.sampled_from("abcd"), st.integers(1, 7), st.booleans())
def test_answers_are_moto_s(keys: set[tuple[str, str]], job: str, limit: int, forward: bool) -> None:
    """Items, order, pages and counts, of partitions with items and without."""
    with table(keys) as dynamodb:
        whole = ask(dynamodb, job, limit=limit, forward=forward)
        query_by_partition()
        assert ask(dynamodb, job, limit=limit, forward=forward) == whole


def test_other_partitions_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query does not sort the table. An index is read as before."""

    def refuse(_: Table) -> Any:
        raise AssertionError("the whole table was read")

    with table({("a", "p#1"), ("a", "p#2"), ("b", "p#1")}) as dynamodb:
        query_by_partition()
        monkeypatch.setattr(Table, "all_items", refuse)
        [[items, *_]] = ask(dynamodb, "a", limit=5, forward=True)
        monkeypatch.undo()
        found = dynamodb.query(
            TableName=JOBS_TABLE,
            IndexName="by-item",
            KeyConditionExpression="#item = :item",
            ExpressionAttributeNames={"#item": "item"},
            ExpressionAttributeValues={":item": {"S": "p#1"}},
        )
    assert [item["item"]["S"] for item in items] == ["p#1", "p#2"]
    assert [item["job"]["S"] for item in found["Items"]] == ["a", "b"]
