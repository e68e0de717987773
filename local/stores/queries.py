"""Queries of moto's DynamoDB at the cost of the partition they name.

Moto sorts every item of the table for each Query, a tenth of a second among 15,000 items. Here a query of
the table itself reads the items of its hash key alone. Queries of an index stay as they are: moto keeps no
items by an index's key. Requests to DynamoDB take turns (`transactions.taking_turns`), so nobody else sees
the narrow table.
Source: moto 5.2, `moto.dynamodb.models.table.Table.query`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def query_by_partition() -> None:
    """From now on a query of a table reads one partition. Called once; requests take turns."""
    from moto.dynamodb.models.table import Table

    whole = Table.query
    signature = inspect.signature(whole)

    def query(table: Any, *given: Any, **named: Any) -> Any:
        asked = signature.bind(table, *given, **named).arguments
        if asked.get("index_name") or not table.range_key_attr:
            return whole(table, *given, **named)
        with _only_partition(table, asked["hash_key"]):
            return whole(table, *given, **named)

    Table.query = query  # type: ignore[assignment,method-assign]


@contextmanager
def _only_partition(table: Any, hash_key: Any) -> Iterator[None]:
    partition = table.items.get(hash_key, {})  # items is a defaultdict: a look must not make a partition
    table.all_items = lambda: list(partition.values())
    try:
        yield
    finally:
        del table.all_items
