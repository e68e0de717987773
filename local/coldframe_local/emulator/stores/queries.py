"""Queries of moto's DynamoDB at the cost of the partition they name.

Moto sorts every item of the table for each Query, a tenth of a second among 15,000 items. Here a query of
the table itself reads the items of its hash key alone. Queries of an index stay as they are: moto keeps no
items by an index's key. Requests to DynamoDB take turns (`transactions.taking_turns`), so nobody else sees
the narrow table.
Source: moto 5.2, `moto.dynamodb.models.table.Table.query`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


def query_by_partition() -> None:
    """From now on a query of a table reads one partition. Called once; requests take turns."""
    from moto.dynamodb.models.table import Table

    whole = Table.query
    signature = inspect.signature(whole)

    def query(table: Any, *positional: Any, **keywords: Any) -> Any:
        arguments = signature.bind(table, *positional, **keywords).arguments
        _check_projection(table, arguments)
        if arguments.get("index_name") or not table.range_key_attr:
            return whole(table, *positional, **keywords)
        with _only_partition(table, arguments["hash_key"]):
            return whole(table, *positional, **keywords)

    Table.query = query  # type: ignore[assignment,method-assign]


def _check_projection(table: Any, arguments: Mapping[str, Any]) -> None:
    """AWS refuses an attribute that a global index does not hold; moto leaves it out of the answer."""
    from moto.dynamodb.exceptions import MockValidationException

    name, attributes = (
        arguments.get("index_name"),
        {path[0] for path in arguments.get("projection_expressions") or []},
    )
    index = next((each for each in table.global_indexes if each.name == name), None)
    if index is None or index.projection.get("ProjectionType") == "ALL":
        return
    keys = [key["AttributeName"] for key in (*table.schema, *index.schema)]
    if missing := attributes - {*keys, *index.projection.get("NonKeyAttributes", [])}:
        why = f"Global secondary index {name} does not project {sorted(missing)}"
        raise MockValidationException(f"One or more parameter values were invalid: {why}")


@contextmanager
def _only_partition(table: Any, hash_key: Any) -> Iterator[None]:
    partition = table.items.get(hash_key, {})  # items is a defaultdict: a look must not make a partition
    table.all_items = lambda: list(partition.values())
    try:
        yield
    finally:
        del table.all_items
