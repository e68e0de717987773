"""The DynamoDB table of the cache: batches, retries within a deadline, and AWS's shapes."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

from msgspec import Struct, field

from coldframe.cache.aws_clients import GARBAGE, OUT_OF_TIME, AwsClients, Failure, failure_of
from coldframe.timing import Deadline

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html, read 2026-11-20
GET_KEYS = 100
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html, read 2026-11-20
PUT_ITEMS = 25
# 400 KB, names of attributes included.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html, read 2026-11-20
ITEM_LIMIT_BYTES = 400 * 1024

KEY, VALUE, EXPIRES = "cache_key", "value", "expires_at_s"

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.1

T = TypeVar("T")


class Item(Struct, frozen=True):
    """A stored value and the end of its life, in seconds since 1970."""

    value: bytes
    expires_at_s: int


class Read(Struct):
    """Result of reading: items in the table, number of foreign items, and why other keys were not
    answered.
    """

    items: dict[bytes, Item] = field(default_factory=dict)
    foreign: int = 0
    answered_keys: int = 0
    """Number of keys that the table answered."""
    failure: Failure | None = None


class Written(Struct):
    """Result of writing: keys that are in the table now, and why other keys are not."""

    keys: set[bytes] = field(default_factory=set)
    failure: Failure | None = None


class _Calls(Protocol):
    """Methods of boto3's client that the store calls."""

    def batch_get_item(self, **request: Any) -> Any: ...

    def batch_write_item(self, **request: Any) -> Any: ...


class DynamoDbStore:
    """Reads and writes items by key. Never raises for errors of the service or the network."""

    def __init__(
        self,
        table: str,
        clients: AwsClients,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """jitter: random numbers from 0 to 1; a pause lasts between half and all of its longest."""
        self._table = table
        self._clients = clients
        self._sleep = sleep
        self._jitter = jitter

    @property
    def ready(self) -> bool:
        """Whether boto3 is imported and a client created."""
        return self._clients.has("dynamodb")

    def set_up(self) -> Failure | None:
        """Creates the client, which takes long in a cold environment."""
        try:
            self._clients.get("dynamodb")
        except Exception as exc:  # boto3 missing, no region, no credentials, an unreadable profile
            return failure_of(exc)
        return None

    def close(self) -> None:
        """Closes connections and forgets credentials, the bucket's too; `set_up` creates new ones."""
        self._clients.close()

    def get_many(self, keys: Iterable[bytes], deadline: Deadline) -> Read:
        """The items of `keys`, in batches of 100; keys without an answer by the deadline are left out."""
        read = Read()
        for batch in chunks(keys, GET_KEYS):
            read.failure = self._get_batch(set(batch), deadline, read)
            if read.failure is not None:
                break
        return read

    def put_many(self, items: Mapping[bytes, Item], deadline: Deadline) -> Written:
        """Writes the items, in batches of 25; items not accepted by the deadline are left out."""
        result = Written()
        for batch in chunks(items, PUT_ITEMS):
            result.failure = self._put_batch({key: items[key] for key in batch}, deadline, result)
            if result.failure is not None:
                break
        return result

    def _get_batch(self, missing: set[bytes], deadline: Deadline, read: Read) -> Failure | None:
        def once(client: _Calls) -> None:
            request = {self._table: {"Keys": [{KEY: {"S": key.hex()}} for key in sorted(missing)]}}
            reply = client.batch_get_item(RequestItems=request)
            rows = _at(_at(reply, "Responses", dict), self._table, list, [])
            left = _at(_at(reply, "UnprocessedKeys", dict, {}), self._table, dict, {})
            unprocessed = {_key_of(key) for key in _at(left, "Keys", list, [])} & missing
            for row in rows:
                key = _key_of(row)
                if key is not None and key in missing:
                    item = _item_of(row)
                    if item is None:
                        read.foreign += 1
                    else:
                        read.items[key] = item
            read.answered_keys += len(missing) - len(unprocessed)
            missing.intersection_update(unprocessed)

        return self._until_done(once, missing, deadline)

    def _put_batch(self, left: dict[bytes, Item], deadline: Deadline, result: Written) -> Failure | None:
        def once(client: _Calls) -> None:
            puts = [{"PutRequest": {"Item": to_row(key, item)}} for key, item in left.items()]
            reply = client.batch_write_item(RequestItems={self._table: puts})
            refused = _at(_at(reply, "UnprocessedItems", dict), self._table, list, [])
            rows = (_at(_at(entry, "PutRequest", dict, {}), "Item", dict, {}) for entry in refused)
            unprocessed = {_key_of(row) for row in rows}
            for key in [key for key in left if key not in unprocessed]:
                result.keys.add(key)
                del left[key]

        return self._until_done(once, left, deadline)

    def _until_done(
        self,
        once: Callable[[_Calls], None],
        left: Mapping[bytes, Item] | set[bytes],
        deadline: Deadline,
    ) -> Failure | None:
        """Repeats `once`, which removes finished keys from `left`, with growing pauses until `left` is
        empty.
        """
        from coldframe.cache.deadline_http import deadline_of_calls

        longest_s = _FIRST_PAUSE_S
        while True:
            failure: Failure | None = None
            count = len(left)
            try:
                if deadline.remaining_s() <= 0:
                    return OUT_OF_TIME
                with deadline_of_calls(deadline):
                    once(self._clients.get("dynamodb"))
            except _Garbage:
                return GARBAGE
            except Exception as exc:  # any error of boto3 or the network is a miss
                failure = failure_of(exc)
                if not failure.may_repeat:
                    return failure
            if not left:
                return None
            if len(left) < count:
                longest_s = _FIRST_PAUSE_S  # the table makes progress
            pause_s = longest_s * (1 + self._jitter()) / 2
            if pause_s >= deadline.remaining_s():
                return failure or OUT_OF_TIME
            self._sleep(pause_s)
            longest_s = min(2 * longest_s, _LONGEST_PAUSE_S)


class _Garbage(Exception):
    """An answer without the form that DynamoDB documents."""


def to_row(key: bytes, item: Item) -> dict[str, Any]:
    """An item in DynamoDB's form."""
    return {
        KEY: {"S": key.hex()},
        VALUE: {"B": item.value},
        EXPIRES: {"N": str(item.expires_at_s)},
    }


def item_bytes(key: bytes, item: Item) -> int:
    """Size by DynamoDB's rules: UTF-8 of names and strings, bytes, and numbers at two digits a byte plus one.

    Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html,
    read 2026-11-20; each number counts at its largest possible size.
    """
    names = len(KEY) + len(VALUE) + len(EXPIRES)
    number = (len(str(item.expires_at_s)) + 1) // 2 + 2
    return names + 2 * len(key) + len(item.value) + number


def chunks(values: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    """The values in order, `size` at a time; the last ones may be fewer."""
    rest = iter(values)
    while chunk := list(islice(rest, size)):
        yield chunk


def _at(value: Any, name: str, kind: type, default: Any = None) -> Any:
    """`value[name]`, of type `kind`. Raises _Garbage for another type, or if it is missing without a
    default.
    """
    content = value.get(name, default) if isinstance(value, dict) else None
    if not isinstance(content, kind):
        raise _Garbage
    return content


def _key_of(row: Any) -> bytes | None:
    try:
        return bytes.fromhex(row[KEY]["S"])
    except (KeyError, TypeError, ValueError):
        return None


def _item_of(row: Any) -> Item | None:
    try:
        value, expires_at_s = row[VALUE]["B"], int(row[EXPIRES]["N"])
    except (KeyError, TypeError, ValueError):
        return None
    return Item(value, expires_at_s) if isinstance(value, bytes) else None
