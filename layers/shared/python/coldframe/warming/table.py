"""The warmer's record in the table of the prediction cache: one item, written by who has read the latest.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html,
read 2026-11-22
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coldframe.warming.record import Damaged, Record, from_attributes, to_attributes

_KEPT_S = 30 * 86_400
# A revision that is no number is damaged, and belongs to nobody.
_UNCHANGED = "attribute_not_exists(cache_key) OR revision = :read OR NOT attribute_type(revision, :number)"


class Overtaken(Exception):
    """Another warmer has written since this one has read."""


def read(client: Any, table: str, function: str) -> tuple[Record, str]:
    """The record, and where it comes from: "kept", or why it begins anew."""
    found = client.get_item(TableName=table, Key=_key(function), ConsistentRead=True).get("Item")
    if found is None:
        return Record(), "new: there was none"
    attributes = {name: _value(value) for name, value in found.items()}
    try:
        return from_attributes(attributes), "kept"
    except Damaged as exc:
        revision = attributes.get("revision")
        return Record(revision=revision if isinstance(revision, int) else 0), f"new: {exc}"


def write(client: Any, table: str, function: str, record: Record, now_s: int) -> None:
    """Raises Overtaken, and then nothing has changed.

    record: as it was read, but for what has changed; its revision is the one that was read.
    """
    attributes = to_attributes(replace(record, revision=record.revision + 1))
    attributes["expires_at_s"] = now_s + _KEPT_S  # the table's own: a function that is gone is forgotten
    try:
        client.put_item(
            TableName=table,
            Item=_key(function) | {name: _attribute(value) for name, value in attributes.items()},
            ConditionExpression=_UNCHANGED,
            ExpressionAttributeValues={":read": {"N": str(record.revision)}, ":number": {"S": "N"}},
        )
    except client.exceptions.ConditionalCheckFailedException as exc:
        raise Overtaken from exc


def _key(function: str) -> dict[str, Any]:
    return {"cache_key": {"S": f"warmer#{function}"}}  # keys of the cache are digests, so none is like it


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, bytes):
        return {"B": value}
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def _value(attribute: dict[str, Any]) -> Any:
    (kind, value), *_ = attribute.items()
    if kind != "N":
        return value
    return int(value) if value.lstrip("-").isdecimal() else value
