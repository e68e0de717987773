"""The warmer's record in the table of the prediction cache: one item, written only over the revision read.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html,
read 2026-11-22
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coldframe.warming.record import Damaged, Record, from_attributes, to_attributes

_KEPT_S = 30 * 86_400
# A revision that is not a number is damaged, and may be overwritten.
_UNCHANGED = "attribute_not_exists(cache_key) OR revision = :read OR NOT attribute_type(revision, :number)"


class Overtaken(Exception):
    """Another warmer has written since this one has read."""


def read(client: Any, table: str, function: str) -> tuple[Record, str]:
    """The record, and its origin: "kept", or the reason for a new one."""
    item = client.get_item(TableName=table, Key=_key(function), ConsistentRead=True).get("Item")
    if item is None:
        return Record(), "new: there was none"
    attributes = {name: _value(value) for name, value in item.items()}
    try:
        return from_attributes(attributes), "kept"
    except Damaged as exc:
        revision = attributes.get("revision")
        return Record(revision=revision if isinstance(revision, int) else 0), f"new: {exc}"


def write(client: Any, table: str, function: str, record: Record, now_s: int) -> None:
    """Writes the record. Raises Overtaken, and then nothing has changed.

    record: the record as read, with changes; its revision is the one that was read.
    """
    attributes = to_attributes(replace(record, revision=record.revision + 1))
    attributes["expires_at_s"] = (
        now_s + _KEPT_S
    )  # the table's expiry: the record of a deleted function is removed
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
    return {"cache_key": {"S": f"warmer#{function}"}}  # keys of the cache are digests, so none equals it


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, bytes):
        return {"B": value}
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def _value(attribute: dict[str, Any]) -> Any:
    (kind, value), *_ = attribute.items()
    if kind != "N":
        return value
    return int(value) if value.lstrip("-").isdecimal() else value
