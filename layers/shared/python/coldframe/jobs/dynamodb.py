"""Records of jobs in a DynamoDB table: one item for a job, one for each answered part.

Keys: `job` (text) and `item` (text): "job"; "part#<generation>#00042"; and, for starts of messages, "start"
under the message's id. There are no transactions: every write is conditional and changes one item, so a
repeated or late write alters nothing, and no two writes can conflict.

A sparse index holds the jobs for the sweeper: jobs with the attributes `watch` and `due_s`. Its
one partition takes 1,000 changes a second, and a job makes two or three.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from coldframe.jobs.object_file import Pin
from coldframe.jobs.ports import Unavailable
from coldframe.jobs.records import Job, Options, PartName, Push, Result, Source, SplitPlace
from coldframe.jobs.states import Event, State, state_after, states_before
from coldframe.timing import Clock

DUE_INDEX = "due"
_JOB, _START = "job", "start"
_KEYS_AT_ONCE = 100  # of BatchGetItem
_LAST_PART = 99_999
_REFUSED = "ConditionalCheckFailedException"
_CREATE_ATTEMPTS = 3
_FIRST_NOTICE_S = 600.0  # after a job's end, when its first notice should have arrived
_WATCH = {"S": "1"}
_AT_WORK = {":queued": {"S": State.QUEUED}, ":running": {"S": State.RUNNING}}
_IS_AT_WORK = "#state IN (:queued, :running)"
_REQUEST = msgspec.json.Decoder(tuple[Options, Source | None, Pin | None, Push | None])
_PLACE = msgspec.json.Decoder(SplitPlace)


class DynamoStore:
    """The store. Safe for threads, as boto3's clients are.

    client: boto3's, created at its first use. now: seconds since 1970. ttl_s: life of a recorded start.
    """

    def __init__(self, table: str, client: Callable[[], Any], now: Clock, ttl_s: float) -> None:
        self._table = table
        self._client = client
        self._now = now
        self._ttl_s = ttl_s

    def create(self, job: Job) -> Job:
        """Repeats a refused write if its job expires before it is read."""
        condition = (
            "attribute_not_exists(#job) OR #expires_at_s <= :now"
            " OR (#digest = :digest AND #state IN (:failed, :cancelled))"
        )
        values = {
            ":now": _number(self._now()),
            ":digest": {"S": job.digest},
            ":failed": {"S": State.FAILED},
            ":cancelled": {"S": State.CANCELLED},
        }
        for _ in range(_CREATE_ATTEMPTS):
            with contextlib.suppress(_ConditionNotMet):
                self._write("put_item", condition, values, Item=_item_of(job))
                return msgspec.structs.replace(job, due_s=job.due_after(job.created_s))
            if (stored := self.get(job.id)) is not None:
                return stored
        raise Unavailable("the job changes too often. Repeat the call")

    def get(self, job_id: str) -> Job | None:
        answer = self._call("get_item", Key=_key(job_id, _JOB), ConsistentRead=True)
        return self._job(answer.get("Item"))

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        items = self._get_items([_key(each, _JOB) for each in job_ids])
        jobs = [job for item in items if (job := self._job(item)) is not None]
        return {job.id: job for job in jobs}

    def end(self, job: Job, event: Event, reason: str = "") -> Job | None:
        before = {f":s{i}": {"S": state} for i, state in enumerate(sorted(states_before(event)))}
        values = {**before, ":to": {"S": state_after(event)}, ":why": {"S": reason}}
        update = "SET #state = :to, #reason = :why"
        if job.push is None:
            update += " REMOVE #watch, #due_s"
        else:
            update += ", #due_s = :due"
            values[":due"] = _number(self._now() + _FIRST_NOTICE_S)
        return self._changed(job, update, f"#state IN ({', '.join(before)})", values)

    def set_parts(self, job: Job, parts: int) -> Job | None:
        condition = f"{_IS_AT_WORK} AND attribute_not_exists(#parts)"
        return self._update(job, "SET #parts = :parts", condition, {":parts": _number(parts), **_AT_WORK})

    def begin_split(self, job: Job, place: SplitPlace) -> None:
        condition = f"{_IS_AT_WORK} AND attribute_not_exists(#split)"
        self._changed(job, "SET #split = :place", condition, {":place": _place(place), **_AT_WORK})

    def advance(self, job: Job, to: SplitPlace, parts: int | None = None) -> Job | None:
        """A refused write may repeat a successful one: then the job's place has the run's name."""
        update = "SET #split = :to, #state = :running, #due_s = :due"
        due = _number(job.due_after(self._now()))
        values = {":to": _place(to), ":at": _place(job.split), ":due": due, **_AT_WORK}
        if parts is not None:
            update += ", #parts = :parts"
            values[":parts"] = _number(parts)
        update += " REMOVE #split_starts"
        condition = f"{_IS_AT_WORK} AND #split = :at"
        if (moved := self._changed(job, update, condition, values)) is not None:
            return moved
        stored = self._same(job)
        return stored if stored is not None and stored.split == to and not stored.state.has_ended else None

    def add_split_start(self, job: Job, start: str) -> int:
        values = {":start": {"SS": [start]}, ":at": _place(job.split)}
        request = self._conditions(job, "#split = :at", values)
        with contextlib.suppress(_ConditionNotMet):
            answer = self._write(
                "update_item",
                *request,
                "ADD #split_starts :start",
                Key=_key(job.id, _JOB),
                ReturnValues="ALL_NEW",
            )
            return len(answer["Attributes"]["split_starts"]["SS"])
        return 0

    def remove_split_start(self, job: Job, start: str) -> None:
        self._changed(job, "DELETE #split_starts :start", "", {":start": {"SS": [start]}})

    def put_result(self, job: Job, result: Result) -> None:
        item = _key(job.id, _part(job.generation, result.part)) | {
            "result": {"B": msgspec.json.encode(result)},
            "expires_at_s": _number(int(job.expires_s)),
        }
        with contextlib.suppress(_ConditionNotMet):  # it is recorded already
            self._write("put_item", "attribute_not_exists(#job)", {}, Item=item)

    def add_done(self, job: Job, parts: Sequence[int]) -> Job | None:
        numbers = {"NS": [str(part) for part in sorted(set(parts))]}
        update = "ADD #done :numbers SET #state = :running"
        return self._update(job, update, _IS_AT_WORK, {":numbers": numbers, **_AT_WORK})

    def results(self, job: Job, first: int) -> Iterator[Result]:
        request = {
            "KeyConditionExpression": "#job = :job AND #item BETWEEN :first AND :last",
            "ExpressionAttributeValues": {
                ":job": {"S": job.id},
                ":first": {"S": _part(job.generation, first)},
                ":last": {"S": _part(job.generation, _LAST_PART)},
            },
            "ConsistentRead": True,
        }
        for item in self._query(request):
            yield msgspec.json.decode(item["result"]["B"], type=Result)

    def recorded(self, parts: Sequence[PartName]) -> set[PartName]:
        keys = [_key(name.job, _part(name.generation, name.part)) for name in dict.fromkeys(parts)]
        items = self._get_items(keys, "#item, #job")
        return {_part_name(item["job"]["S"], item["item"]["S"]) for item in items}

    def add_start(self, message_id: str, start: str) -> int:
        """A set of names: adding a name twice has no further effect."""
        answer = self._call(
            "update_item",
            Key=_key(message_id, _START),
            UpdateExpression="ADD starts :start SET expires_at_s = :expires",
            ExpressionAttributeValues={
                ":start": {"SS": [start]},
                ":expires": _number(int(self._now() + self._ttl_s)),
            },
            ReturnValues="ALL_NEW",
        )
        return len(answer["Attributes"]["starts"]["SS"])

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

    def set_notified(self, job: Job) -> None:
        self._changed(job, "SET #notified = :yes REMOVE #watch, #due_s", "", {":yes": {"BOOL": True}})

    def due(self, now_s: float) -> Iterator[Job]:
        request = {
            "IndexName": DUE_INDEX,
            "KeyConditionExpression": "#watch = :watch AND #due_s <= :now",
            "ExpressionAttributeValues": {":watch": _WATCH, ":now": _number(now_s)},
        }
        for item in self._query(request):
            job = self.get(item["job"]["S"])
            if job is not None and job.due_s is not None and job.due_s <= now_s:
                yield job

    def postpone(self, job: Job, due_s: float) -> None:
        self._changed(job, "SET #due_s = :due", "attribute_exists(#due_s)", {":due": _number(due_s)})

    def _update(self, job: Job, update: str, condition: str, values: dict[str, Any]) -> Job | None:
        """The job afterwards, whether the condition was met or not."""
        return self._changed(job, update, condition, values) or self._same(job)

    def _same(self, job: Job) -> Job | None:
        """The current job, if its generation is still the same."""
        stored = self.get(job.id)
        return stored if stored is not None and stored.generation == job.generation else None

    def _changed(self, job: Job, update: str, condition: str, values: dict[str, Any]) -> Job | None:
        """The job after a change; None where the condition was not met."""
        request = self._conditions(job, condition, values)
        with contextlib.suppress(_ConditionNotMet):
            answer = self._write(
                "update_item", *request, update, Key=_key(job.id, _JOB), ReturnValues="ALL_NEW"
            )
            return self._job(answer["Attributes"])
        return None

    @staticmethod
    def _conditions(job: Job, condition: str, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """A condition with the job's generation in it."""
        own = "#generation = :generation"
        whole = f"{own} AND {condition}" if condition else own
        return whole, {":generation": {"S": job.generation}, **values}

    def _write(
        self, method: str, condition: str, values: dict[str, Any], update: str = "", **request: Any
    ) -> Any:
        """A conditional write. Raises _ConditionNotMet, Unavailable."""
        if update:
            request["UpdateExpression"] = update
        if values:
            request["ExpressionAttributeValues"] = values
        names = _names(update + condition)
        return self._call(method, ConditionExpression=condition, ExpressionAttributeNames=names, **request)

    def _query(self, request: dict[str, Any]) -> Iterator[Any]:
        names = _names(request["KeyConditionExpression"])
        while True:
            page = self._call("query", ExpressionAttributeNames=names, **request)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _get_items(self, keys: Sequence[Any], projection: str = "") -> Iterator[Any]:
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            request: dict[str, Any] = {
                "Keys": list(keys[first : first + _KEYS_AT_ONCE]),
                "ConsistentRead": True,
            }
            if projection:
                names = _names(projection)
                request |= {"ProjectionExpression": projection, "ExpressionAttributeNames": names}
            while request:
                page = self._call("batch_get_item", has_table=False, RequestItems={self._table: request})
                yield from page["Responses"].get(self._table, [])
                request = page.get("UnprocessedKeys", {}).get(self._table, {})

    def _job(self, item: Any) -> Job | None:
        """The job of an item; None if it has expired: DynamoDB deletes it hours later."""
        if item is None or float(item["expires_at_s"]["N"]) <= self._now():
            return None
        options, source, pin, push = _REQUEST.decode(item["request"]["B"])
        return Job(
            id=item["job"]["S"],
            generation=item["generation"]["S"],
            digest=item["digest"]["S"],
            state=State(item["state"]["S"]),
            options=options,
            created_s=float(item["created_s"]["N"]),
            expires_s=float(item["expires_at_s"]["N"]),
            owner=item["owner"]["S"],
            source=source,
            pin=pin,
            push=push,
            parts=int(item["parts"]["N"]) if "parts" in item else None,
            done=frozenset(int(number) for number in item.get("done", {}).get("NS", ())),
            split=_PLACE.decode(item["split"]["B"]) if "split" in item else None,
            reason=item.get("reason", {}).get("S", ""),
            notified=item.get("notified", {}).get("BOOL", False),
            due_s=float(item["due_s"]["N"]) if "due_s" in item else None,
            traceparent=item.get("traceparent", {}).get("S", ""),
        )

    def _call(self, method: str, has_table: bool = True, **request: Any) -> Any:
        """A call of boto3. Raises _ConditionNotMet, Unavailable."""
        table = {"TableName": self._table} if has_table else {}
        try:
            return getattr(self._client(), method)(**table, **request)
        except Exception as exc:  # any error of boto3 or the network
            if getattr(exc, "response", {}).get("Error", {}).get("Code") == _REFUSED:
                raise _ConditionNotMet from exc
            raise Unavailable(type(exc).__name__) from exc


class _ConditionNotMet(Exception):
    """A write's condition does not hold."""


def _item_of(job: Job) -> dict[str, Any]:
    """A new job's item."""
    return _key(job.id, _JOB) | {
        "generation": {"S": job.generation},
        "state": {"S": job.state},
        "digest": {"S": job.digest},
        "owner": {"S": job.owner},
        "request": {"B": msgspec.json.encode((job.options, job.source, job.pin, job.push))},
        "created_s": _number(job.created_s),
        "expires_at_s": _number(int(job.expires_s)),
        "watch": _WATCH,
        "due_s": _number(job.due_after(job.created_s)),
        **({"traceparent": {"S": job.traceparent}} if job.traceparent else {}),
    }


def _names(expression: str) -> dict[str, str]:
    """Placeholders of an expression's attributes: DynamoDB reserves more than five hundred words."""
    return {f"#{name}": name for name in re.findall(r"#(\w+)", expression)}


def _key(job: str, item: str) -> dict[str, Any]:
    return {"job": {"S": job}, "item": {"S": item}}


def _number(value: float) -> dict[str, str]:
    return {"N": str(value)}


def _place(place: SplitPlace | None) -> dict[str, bytes]:
    return {"B": msgspec.json.encode(place)}


def _part(generation: str, number: int) -> str:
    return f"part#{generation}#{number:05d}"


def _part_name(job: str, item: str) -> PartName:
    _, generation, number = item.split("#")
    return PartName(job, generation, int(number))
