"""Queries of one partition: the same answers as moto's own, without a look at other items."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws
from moto.dynamodb.models.table import Table

from coldframe.jobs.dynamodb import DUE_INDEX
from coldframe_local.emulator.stores.queries import query_by_partition
from tests.support.dynamodb import JOBS_TABLE, create_jobs_table

_KEYS = st.tuples(st.sampled_from("abc"), st.sampled_from([f"{kind}#{n}" for kind in "jp" for n in range(6)]))


@contextmanager
def table(keys: set[tuple[str, str]]) -> Iterator[Any]:
    """Items of these keys in the table of jobs. Moto's own queries come back."""
    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "query", Table.query)
        client = boto3.client("dynamodb", region_name="us-east-1")
        create_jobs_table(client)
        for job, item in sorted(keys):
            client.put_item(TableName=JOBS_TABLE, Item=key_of(job, item))
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
    """A query does not sort the table."""

    def refuse(_: Table) -> Any:
        raise AssertionError("the whole table was read")

    with table({("a", "p#1"), ("a", "p#2"), ("b", "p#1")}) as dynamodb:
        query_by_partition()
        monkeypatch.setattr(Table, "all_items", refuse)
        [[items, *_]] = ask(dynamodb, "a", limit=5, forward=True)
        monkeypatch.undo()
    assert [item["item"]["S"] for item in items] == ["p#1", "p#2"]


def test_sparse_index() -> None:
    """An index of keys holds the items with its attributes alone, sorted and in pages, as they are now."""
    with table(set()) as dynamodb:
        query_by_partition()
        for number in range(9):
            due = {"watch": {"S": "yes"}, "due_s": {"N": str(100 - number)}} if number % 2 else {}
            item = {**key_of(str(number)), **due, "state": {"S": "running"}}
            dynamodb.put_item(TableName=JOBS_TABLE, Item=item)
        first = dynamodb.query(**DUE, Limit=3)
        assert [item["job"]["S"] for item in first["Items"]] == ["7", "5", "3"]
        assert set(first["Items"][0]) == {"job", "item", "watch", "due_s"}
        rest = dynamodb.query(**DUE, Limit=3, ExclusiveStartKey=first["LastEvaluatedKey"])
        assert [item["job"]["S"] for item in rest["Items"]] == ["1"]
        dynamodb.update_item(TableName=JOBS_TABLE, Key=key_of("5"), UpdateExpression="REMOVE watch, due_s")
        left = dynamodb.query(**DUE, ProjectionExpression="job")["Items"]
        assert left == [{"job": {"S": each}} for each in "731"]


def test_index_without_the_attribute() -> None:
    """An attribute that an index does not hold is refused, as by AWS."""
    with table(set()) as dynamodb:
        query_by_partition()
        with pytest.raises(ClientError, match=r"does not project \['reason'\]"):
            dynamodb.query(**DUE, ProjectionExpression="job, reason")


def test_number_sets_and_conditions() -> None:
    """Numbers are added to a set once; a new item replaces only one that has expired."""
    key = key_of("a")
    with table({("a", "job")}) as dynamodb:
        for numbers in (["1", "2"], ["2", "3"]):
            added = dynamodb.update_item(
                TableName=JOBS_TABLE,
                Key=key,
                UpdateExpression="ADD done :numbers SET expires_at_s = :at",
                ExpressionAttributeValues={":numbers": {"NS": numbers}, ":at": {"N": "7"}},
                ReturnValues="ALL_NEW",
            )
        assert set(added["Attributes"]["done"]["NS"]) == {"1", "2", "3"}

        def create(now_s: int) -> None:
            dynamodb.put_item(
                TableName=JOBS_TABLE,
                Item=key,
                ConditionExpression="attribute_not_exists(job) OR expires_at_s <= :now",
                ExpressionAttributeValues={":now": {"N": str(now_s)}},
            )

        with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException):
            create(6)
        create(7)
        assert dynamodb.get_item(TableName=JOBS_TABLE, Key=key)["Item"] == key


DUE: dict[str, Any] = {
    "TableName": JOBS_TABLE,
    "IndexName": DUE_INDEX,
    "KeyConditionExpression": "watch = :yes AND due_s <= :now",
    "ExpressionAttributeValues": {":yes": {"S": "yes"}, ":now": {"N": "99"}},
}


def key_of(job: str, item: str = "job") -> dict[str, Any]:
    return {"job": {"S": job}, "item": {"S": item}}
