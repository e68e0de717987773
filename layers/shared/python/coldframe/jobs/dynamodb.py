"""Records of jobs in a DynamoDB table: one item for a job, one for each part that is done.

Keys: `job` (text) and `item` (text): "job", "part#00042" and, for starts of messages, "start" under the
message's id. Every write has a condition, so that a repeat, or who comes late, changes nothing.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from coldframe.jobs.ports import Unavailable
from coldframe.jobs.records import Job, Options, Push, Result, Source
from coldframe.jobs.states import Event, State, state_after, states_before
from coldframe.timing import Clock

_JOB, _START = "job", "start"
_KEYS_AT_ONCE = 100  # of BatchGetItem
_REFUSED = ("ConditionalCheckFailedException", "TransactionCanceledException")
_NOT_MET = "ConditionalCheckFailed"


class DynamoStore:
    """The store. Safe for threads, as boto3's clients are.

    client: boto3's, when it is first needed. now: seconds since 1970. ttl_s: life of an item.
    """

    def __init__(self, table: str, client: Callable[[], Any], now: Clock, ttl_s: float) -> None:
        self._table = table
        self._client = client
        self._now = now
        self._ttl_s = ttl_s

    def create(self, job: Job) -> Job:
        item = _key(job.id, _JOB) | {
            "state": {"S": job.state},
            "digest": {"S": job.digest},
            "asked": {"B": msgspec.json.encode((job.options, job.source, job.push))},
            "created_s": {"N": str(job.created_s)},
            "expires_at_s": {"N": str(int(job.expires_s))},
            "done": {"N": "0"},
        }
        try:
            self._call("put_item", Item=item, ConditionExpression="attribute_not_exists(job)")
        except _ConditionNotMet:
            return self.get(job.id) or job
        return job

    def get(self, job_id: str) -> Job | None:
        found = self._call("get_item", Key=_key(job_id, _JOB), ConsistentRead=True)
        return self._job(found.get("Item"))

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        items = self._get_items([_key(each, _JOB) for each in job_ids])
        jobs = [job for item in items if (job := self._job(item)) is not None]
        return {job.id: job for job in jobs}

    def apply(self, job_id: str, event: Event, reason: str = "") -> Job | None:
        before = {f":s{i}": {"S": state} for i, state in enumerate(sorted(states_before(event)))}
        allowed = f"#state IN ({', '.join(before)})"
        values = {**before, ":to": {"S": state_after(event)}, ":why": {"S": reason}}
        return self._update(job_id, "SET #state = :to, reason = :why", allowed, values)

    def set_parts(self, job_id: str, parts: int) -> Job | None:
        return self._update(
            job_id,
            "SET parts = :parts",
            "#state IN (:queued, :running) AND attribute_not_exists(parts)",
            {":parts": {"N": str(parts)}, **_AT_WORK},
        )

    def record(self, job_id: str, result: Result) -> Job | None:
        """In one transaction: the part's item, and the count of the job."""
        item = _key(job_id, _part(result.part)) | {
            "result": {"B": msgspec.json.encode(result)},
            "expires_at_s": {"N": str(int(self._now() + self._ttl_s))},
        }
        put = {"TableName": self._table, "Item": item, "ConditionExpression": "attribute_not_exists(job)"}
        count = {
            "TableName": self._table,
            "Key": _key(job_id, _JOB),
            "UpdateExpression": "ADD done :one",
            "ConditionExpression": "#state IN (:queued, :running)",
            "ExpressionAttributeNames": {"#state": "state"},
            "ExpressionAttributeValues": {":one": {"N": "1"}, **_AT_WORK},
        }
        items = [{"Put": put}, {"Update": count}]
        with contextlib.suppress(_ConditionNotMet):  # it is recorded already, or the job has ended
            self._call("transact_write_items", has_table=False, TransactItems=items)
        return self.get(job_id)

    def results(self, job_id: str) -> list[Result]:
        request: dict[str, Any] = {
            "KeyConditionExpression": "job = :job AND begins_with(#item, :part)",
            "ExpressionAttributeNames": {"#item": "item"},
            "ExpressionAttributeValues": {":job": {"S": job_id}, ":part": {"S": "part#"}},
            "ConsistentRead": True,
        }
        found: list[Result] = []
        while True:
            page = self._call("query", **request)
            found += [msgspec.json.decode(item["result"]["B"], type=Result) for item in page["Items"]]
            if "LastEvaluatedKey" not in page:
                return found
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def recorded(self, parts: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        items = self._get_items([_key(job, _part(part)) for job, part in dict.fromkeys(parts)], "#item, job")
        return {(item["job"]["S"], int(item["item"]["S"].removeprefix("part#"))) for item in items}

    def add_start(self, message_id: str, start: str) -> int:
        """A set of names: to add one twice adds it once."""
        found = self._call(
            "update_item",
            Key=_key(message_id, _START),
            UpdateExpression="ADD starts :start SET expires_at_s = :expires",
            ExpressionAttributeValues={
                ":start": {"SS": [start]},
                ":expires": {"N": str(int(self._now() + self._ttl_s))},
            },
            ReturnValues="ALL_NEW",
        )
        return len(found["Attributes"]["starts"]["SS"])

    def remove_start(self, message_id: str, start: str) -> None:
        self._call(
            "update_item",
            Key=_key(message_id, _START),
            UpdateExpression="DELETE starts :start",
            ExpressionAttributeValues={":start": {"SS": [start]}},
        )

    def starts(self, message_ids: Sequence[str]) -> dict[str, int]:
        items = self._get_items([_key(each, _START) for each in dict.fromkeys(message_ids)])
        return {item["job"]["S"]: len(item["starts"]["SS"]) for item in items if "starts" in item}

    def set_notified(self, job_id: str) -> None:
        self._update(job_id, "SET notified = :yes", "attribute_exists(job)", {":yes": {"BOOL": True}})

    def _update(self, job_id: str, update: str, condition: str, values: dict[str, Any]) -> Job | None:
        """The job afterwards, whether the condition was met or not."""
        named = "#state" in update + condition
        names: dict[str, Any] = {"ExpressionAttributeNames": {"#state": "state"}} if named else {}
        try:
            found = self._call(
                "update_item",
                Key=_key(job_id, _JOB),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW",
                **names,
            )
        except _ConditionNotMet:
            return self.get(job_id)
        return self._job(found["Attributes"])

    def _get_items(self, keys: Sequence[Any], projection: str = "") -> Iterator[Any]:
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            asked: dict[str, Any] = {
                "Keys": list(keys[first : first + _KEYS_AT_ONCE]),
                "ConsistentRead": True,
            }
            if projection:
                asked |= {"ProjectionExpression": projection, "ExpressionAttributeNames": {"#item": "item"}}
            while asked:
                page = self._call("batch_get_item", has_table=False, RequestItems={self._table: asked})
                yield from page["Responses"].get(self._table, [])
                asked = page.get("UnprocessedKeys", {}).get(self._table, {})

    def _job(self, item: Any) -> Job | None:
        """A job of an item; None for one that has expired: DynamoDB deletes it hours later."""
        if item is None or float(item["expires_at_s"]["N"]) <= self._now():
            return None
        options, source, push = msgspec.json.decode(
            item["asked"]["B"], type=tuple[Options, Source | None, Push | None]
        )
        return Job(
            id=item["job"]["S"],
            digest=item["digest"]["S"],
            state=State(item["state"]["S"]),
            options=options,
            created_s=float(item["created_s"]["N"]),
            expires_s=float(item["expires_at_s"]["N"]),
            source=source,
            push=push,
            parts=int(item["parts"]["N"]) if "parts" in item else None,
            done=int(item["done"]["N"]),
            reason=item.get("reason", {}).get("S", ""),
            notified=item.get("notified", {}).get("BOOL", False),
        )

    def _call(self, method: str, has_table: bool = True, **request: Any) -> Any:
        """A call of boto3. Raises _ConditionNotMet, Unavailable."""
        table = {"TableName": self._table} if has_table else {}
        try:
            return getattr(self._client(), method)(**table, **request)
        except Exception as exc:  # whatever boto3 or the network comes up with
            if _is_not_met(exc):
                raise _ConditionNotMet from exc
            raise Unavailable(type(exc).__name__) from exc


class _ConditionNotMet(Exception):
    """A write's condition does not hold."""


_AT_WORK = {":queued": {"S": State.QUEUED}, ":running": {"S": State.RUNNING}}


def _is_not_met(exc: Exception) -> bool:
    """Of a transaction only if a condition, and not another transaction at the same time, stopped it."""
    response = getattr(exc, "response", {})
    if response.get("Error", {}).get("Code") not in _REFUSED:
        return False
    reasons = [each.get("Code") for each in response.get("CancellationReasons", [])]
    return not reasons or _NOT_MET in reasons


def _key(job: str, item: str) -> dict[str, Any]:
    return {"job": {"S": job}, "item": {"S": item}}


def _part(number: int) -> str:
    return f"part#{number:05d}"
