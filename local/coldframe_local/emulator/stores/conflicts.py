"""Conflicts of DynamoDB's transactions: what is refused while another request holds the same item.

AWS cancels one of two transactions on an item and never waits, which moto does not do: it cannot have two at
once. A request holds its items from its arrival to its answer, so requests that wait for their turn conflict.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling
(read 2026-11-22).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

Item = tuple[str, bytes]
"""A table's name, and an item's key as JSON."""

KeyNames = Callable[[str], Sequence[str]]
"""Names of a table's key attributes; none for a table that is not there."""

_TARGET = "DynamoDB_20120810."
_WRITE, _READ = "TransactWriteItems", "TransactGetItems"
_SINGLE = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
_TYPE = "com.amazonaws.dynamodb.v20120810#"
_WHY = "Transaction is ongoing for the item"


class Conflicts:
    """Items that requests in flight hold. Safe for threads."""

    def __init__(self, key_names: KeyNames) -> None:
        self._key_names = key_names
        self._lock = threading.Lock()
        self._transacted: Counter[Item] = Counter()
        self._written: Counter[Item] = Counter()

    @contextmanager
    def during(self, target: str, body: bytes) -> Iterator[bytes | None]:
        """Holds the items of a request; or gives the body of the error that refuses it.

        target: the header `x-amz-target`.
        """
        operation = target.removeprefix(_TARGET)
        items = self._items(operation, body)
        in_flight = {_WRITE: self._transacted, _READ: Counter[Item]()}.get(operation, self._written)
        with self._lock:
            refused = [self._conflicts(operation, item) for item in items]
            if not any(refused):
                in_flight.update(items)
        if any(refused):
            yield _error(operation, refused)
            return
        try:
            yield None
        finally:
            with self._lock:
                in_flight.subtract(items)

    def _conflicts(self, operation: str, item: Item) -> bool:
        """A read sees no write half done; a write waits for other writes, unless it is in a transaction."""
        return self._transacted[item] > 0 or (operation == _READ and self._written[item] > 0)

    def _items(self, operation: str, body: bytes) -> list[Item]:
        """Items that a request names; none for a request that moto will refuse."""
        if operation not in {_WRITE, _READ, *_SINGLE}:
            return []
        try:
            request = msgspec.json.decode(body)
            if operation in _SINGLE:
                return [self._item(request)]
            return [self._item(each) for entry in request["TransactItems"] for each in entry.values()]
        except (msgspec.DecodeError, AttributeError, KeyError, TypeError):
            return []

    def _item(self, request: Mapping[str, Any]) -> Item:
        """Raises KeyError where it names no item."""
        table = request["TableName"]
        attributes = request.get("Key") or request["Item"]
        names = self._key_names(table)
        if not names:
            raise KeyError(table)
        return table, msgspec.json.encode([attributes[name] for name in names], order="sorted")


def _error(operation: str, refused: Sequence[bool]) -> bytes:
    if operation in _SINGLE:
        return msgspec.json.encode({"__type": f"{_TYPE}TransactionConflictException", "message": _WHY})
    reasons = [
        {"Code": "TransactionConflict", "Message": _WHY} if each else {"Code": "None"} for each in refused
    ]
    codes = ", ".join(each["Code"] for each in reasons)
    why = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    kind = f"{_TYPE}TransactionCanceledException"
    return msgspec.json.encode({"__type": kind, "Message": why, "CancellationReasons": reasons})
