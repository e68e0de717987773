"""The DynamoDB table of an experiment: conditional writes, and transactions for labels."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coldframe.cache.aws_clients import AwsClients, failure_of
from coldframe.experiments.stores import KEPT_S, LABEL, FolderStore, Item, Label, Store, StoreFails
from coldframe.timing import Clock, Deadline

_REFUSED = "ConditionalCheckFailed"
_CANCELED = "TransactionCanceledException"
_SHARDS = 16
_SUMS = "labels/"
_PREFIX = "n_"
_PAUSE_S = 0.005
_NAMES = {"#revision": "revision", "#expires": "expires_at_s"}
_PARTITION, _NAME = "run", "item"


class TableStore:
    """The table: partition key `run`, sort key `item`, both strings. See `Store`.

    clients: create boto3's client at its first use. now: seconds since 1970.
    """

    def __init__(
        self,
        table: str,
        clients: AwsClients,
        now: Clock = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._table = table
        self._clients = clients
        self._now = now
        self._sleep = sleep

    def set_up(self) -> None:
        """Imports boto3 and creates the client."""
        try:
            self._clients.get("dynamodb")
        except Exception as exc:  # boto3 missing, no region, no credentials
            raise StoreFails(f"DynamoDB: {failure_of(exc).name}") from exc

    def close(self) -> None:
        """Closes connections and forgets credentials."""
        self._clients.close()

    def read(self, partition: str, name: str, deadline: Deadline) -> Item | None:
        """See `Store`."""
        reply = self._call("get_item", deadline, Key=_key(partition, name), ConsistentRead=True)
        row = reply.get("Item") if reply else None
        return _item_of(row) if row and self._is_alive(row) else None

    def write(self, partition: str, item: Item, deadline: Deadline, replaces: int | None = None) -> bool:
        """See `Store`."""
        now_s = int(self._now())
        row = _key(partition, item.name) | {
            "value": {"S": item.value.decode()},
            "revision": {"N": str(item.revision)},
            "expires_at_s": {"N": str(now_s + KEPT_S)},
        }
        is_new = "attribute_not_exists(#revision) OR #expires <= :now"
        if replaces is None:
            condition, bound = f"{is_new} OR #revision < :revision", item.revision
        elif replaces == 0:
            condition, bound = is_new, None
        else:
            condition, bound = "#revision = :revision AND #expires > :now", replaces
        values = {":now": {"N": str(now_s)}}
        if bound is not None:
            values[":revision"] = {"N": str(bound)}
        names = _NAMES if "#revision" in condition else {"#expires": "expires_at_s"}
        reply = self._call(
            "put_item",
            deadline,
            Item=row,
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )
        return reply is not None

    def items(self, partition: str, prefix: str, deadline: Deadline) -> list[Item]:
        """See `Store`."""
        return [_item_of(row) for row in self._rows(partition, prefix, deadline)]

    def add_label(self, partition: str, label: Label, deadline: Deadline) -> bool:
        """See `Store`. The mark of the label and the sums change together."""
        values = {"lineup": {"S": label.lineup}, "expires_at_s": {"N": str(int(self._now()) + KEPT_S)}}
        values |= _numbers(label.counts)
        mark = {
            "TableName": self._table,
            "Item": _key(partition, LABEL + label.nonce) | values,
            "ConditionExpression": "attribute_not_exists(#item)",
            "ExpressionAttributeNames": {"#item": _NAME},
        }
        return self._transact(
            {"Put": mark}, self._sum(partition, label.lineup, label.nonce, label.counts, 1), deadline
        )

    def remove_label(self, partition: str, nonce: str, deadline: Deadline) -> None:
        """See `Store`."""
        key = _key(partition, LABEL + nonce)
        reply = self._call("get_item", deadline, Key=key, ConsistentRead=True)
        row = reply.get("Item") if reply else None
        if row is None:
            return
        mark = {
            "TableName": self._table,
            "Key": key,
            "ConditionExpression": "attribute_exists(#item)",
            "ExpressionAttributeNames": {"#item": _NAME},
        }
        back = self._sum(partition, row["lineup"]["S"], nonce, _counts_of(row), -1)
        self._transact({"Delete": mark}, back, deadline)

    def label_counts(self, partition: str, lineup: str, deadline: Deadline) -> dict[str, int]:
        """See `Store`."""
        total: Counter[str] = Counter()
        for row in self._rows(partition, f"{_SUMS}{lineup}/", deadline):
            total.update(_counts_of(row))
        return dict(total)

    def _sum(
        self, partition: str, lineup: str, nonce: str, counts: dict[str, int], sign: int
    ) -> dict[str, Any]:
        """Change of a part of the sums; the nonce chooses the part, so that few labels meet in one."""
        shard = int(nonce[:2] or "0", 16) % _SHARDS
        names = {f"#{i}": _PREFIX + name for i, name in enumerate(counts)} | {"#expires": "expires_at_s"}
        values = {f":{i}": {"N": str(sign * count)} for i, count in enumerate(counts.values())}
        values[":expires"] = {"N": str(int(self._now()) + KEPT_S)}
        adds = ", ".join(f"#{i} :{i}" for i in range(len(counts)))
        return {
            "Update": {
                "TableName": self._table,
                "Key": _key(partition, f"{_SUMS}{lineup}/{shard:x}"),
                "UpdateExpression": f"SET #expires = :expires ADD {adds}",
                "ExpressionAttributeNames": names,
                "ExpressionAttributeValues": values,
            }
        }

    def _transact(self, *operations: Any) -> bool:
        *items, deadline = operations
        return self._call("transact_write_items", deadline, TransactItems=items) is not None

    def _rows(self, partition: str, prefix: str, deadline: Deadline) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        start: dict[str, Any] = {}
        while True:
            reply = self._call(
                "query",
                deadline,
                KeyConditionExpression="#run = :run AND begins_with(#item, :prefix)",
                ExpressionAttributeNames={"#run": _PARTITION, "#item": _NAME},
                ExpressionAttributeValues={":run": {"S": partition}, ":prefix": {"S": prefix}},
                ConsistentRead=True,
                **start,
            )
            rows += [row for row in (reply or {}).get("Items", []) if self._is_alive(row)]
            if not reply or not (last := reply.get("LastEvaluatedKey")):
                return rows
            start = {"ExclusiveStartKey": last}

    def _is_alive(self, row: dict[str, Any]) -> bool:
        return int(row["expires_at_s"]["N"]) > self._now()

    def _call(self, operation: str, deadline: Deadline, **arguments: Any) -> dict[str, Any] | None:
        """boto3's answer, repeated within the deadline; None where the condition does not hold."""
        from coldframe.cache.deadline_http import deadline_of_calls

        if operation != "transact_write_items":
            arguments["TableName"] = self._table
        while True:
            try:
                if deadline.remaining_s() <= 0:
                    raise StoreFails("DynamoDB: DeadlineExceeded")
                with deadline_of_calls(deadline):
                    reply: dict[str, Any] = getattr(self._clients.get("dynamodb"), operation)(**arguments)
                    return reply
            except StoreFails:
                raise
            except Exception as exc:  # any error of boto3 or the network
                if _is_refused(exc):
                    return None
                failure = failure_of(exc)
                is_conflict = failure.name in (_CANCELED, "TransactionConflictException")
                if not (failure.may_repeat or is_conflict) or deadline.remaining_s() <= _PAUSE_S:
                    raise StoreFails(f"DynamoDB: {failure.name}") from exc
            self._sleep(_PAUSE_S)


def open_store(place: str, deadline_s: float) -> Store:
    """The store that a setting names: a folder where it has a `/`, else a DynamoDB table."""
    if "/" in place:
        return FolderStore(Path(place))
    return TableStore(place, AwsClients(deadline_s))


def _is_refused(exc: Exception) -> bool:
    """Whether a condition did not hold, in a single write or in a transaction."""
    response = getattr(exc, "response", None) or {}
    reasons = [reason.get("Code") for reason in response.get("CancellationReasons", [])]
    return failure_of(exc).name == f"{_REFUSED}Exception" or _REFUSED in reasons


def _key(partition: str, name: str) -> dict[str, Any]:
    return {_PARTITION: {"S": partition}, _NAME: {"S": name}}


def _item_of(row: dict[str, Any]) -> Item:
    return Item(row[_NAME]["S"], row["value"]["S"].encode(), int(row["revision"]["N"]))


def _numbers(counts: dict[str, int]) -> dict[str, Any]:
    return {_PREFIX + name: {"N": str(count)} for name, count in counts.items()}


def _counts_of(row: dict[str, Any]) -> dict[str, int]:
    return {
        name.removeprefix(_PREFIX): int(value["N"]) for name, value in row.items() if name.startswith(_PREFIX)
    }
