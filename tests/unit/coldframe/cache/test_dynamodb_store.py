"""Batches, sizes, retries and shapes of the DynamoDB table, over a client without a network."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.cache.aws_clients import AwsClients, Failure, failure_of
from coldframe.cache.dynamodb_store import DynamoDbStore, Item, chunks, item_bytes, to_row
from coldframe.timing import Deadline


class FakeTime:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds


class FakeTable:
    """A table that processes so many keys of each call."""

    def __init__(self, processed: list[int]) -> None:
        self.rows: dict[str, Any] = {}
        self.processed = processed
        self.calls: list[int] = []

    def batch_get_item(self, RequestItems: Any) -> Any:  # noqa: N803
        keys = RequestItems["table"]["Keys"]
        done = self._done(len(keys))
        rows = [self.rows[key["cache_key"]["S"]] for key in keys[:done] if key["cache_key"]["S"] in self.rows]
        left = {"table": {"Keys": keys[done:]}} if keys[done:] else {}
        return {"Responses": {"table": rows}, "UnprocessedKeys": left}

    def batch_write_item(self, RequestItems: Any) -> Any:  # noqa: N803
        puts = RequestItems["table"]
        done = self._done(len(puts))
        for put in puts[:done]:
            row = put["PutRequest"]["Item"]
            self.rows[row["cache_key"]["S"]] = row
        return {"UnprocessedItems": {"table": puts[done:]} if puts[done:] else {}}

    def _done(self, asked: int) -> int:
        self.calls.append(asked)
        return min(asked, self.processed.pop(0)) if self.processed else asked


class FakeClients(AwsClients):
    def __init__(self, table: FakeTable) -> None:
        super().__init__(1.0)
        self._clients["dynamodb"] = table


def store_of(table: FakeTable, time: FakeTime) -> DynamoDbStore:
    return DynamoDbStore("table", FakeClients(table), time.sleep, jitter=lambda: 0.5)


keys = st.sets(st.binary(min_size=16, max_size=16), max_size=260)
processed = st.lists(st.integers(0, 100), max_size=6)


@given(keys, processed)
def test_every_key_is_asked_until_it_is_processed(wanted: set[bytes], parts: list[int]) -> None:
    """However the table splits a batch, all items are written and read back, in batches of its limits."""
    time, table = FakeTime(), FakeTable(list(parts))
    store = store_of(table, time)
    items = {key: Item(key, 7) for key in wanted}
    written = store.put_many(items, Deadline(60.0, time.clock))
    assert (written.keys, written.failure) == (wanted, None)
    assert max(table.calls, default=0) <= 25
    table.calls, table.processed = [], list(parts)
    read = store.get_many(wanted, Deadline(60.0, time.clock))
    assert (read.items, read.answered_keys, read.failure) == (items, len(wanted), None)
    assert max(table.calls, default=0) <= 100


@given(keys.filter(bool), st.floats(0.001, 1.0))
def test_never_past_its_deadline(wanted: set[bytes], limit_s: float) -> None:
    """A table that processes nothing is asked until the deadline, with growing pauses that end before it."""
    time, table = FakeTime(), FakeTable([0] * 10_000)
    read = store_of(table, time).get_many(wanted, Deadline(limit_s, time.clock))
    assert (read.items, read.answered_keys, read.failure) == ({}, 0, Failure("DeadlineExceeded"))
    assert time.now_s <= limit_s
    growing = time.pauses[:4]
    assert growing == sorted(growing)


def test_no_time_no_call() -> None:
    """When the deadline has passed, nothing is sent."""
    time, table = FakeTime(), FakeTable([])
    read = store_of(table, time).get_many([bytes(16)], Deadline(0.0, time.clock))
    assert (read.failure, table.calls) == (Failure("DeadlineExceeded"), [])


@given(st.lists(st.integers()), st.integers(1, 30))
def test_chunks(values: list[int], size: int) -> None:
    """Chunks are the values in order; all but the last are full, and none is empty."""
    parts = [list(part) for part in chunks(values, size)]
    assert [value for part in parts for value in part] == values
    assert all(len(part) == size for part in parts[:-1])
    assert all(parts)


@given(st.binary(min_size=16, max_size=16), st.binary(max_size=2000), st.integers(0, 10**12))
def test_item_bytes(key: bytes, value: bytes, expires_at_s: int) -> None:
    """An item's size is that of names and values as they are stored, and not much more."""
    item = Item(value, expires_at_s)
    row = to_row(key, item)
    parts = sum(len(name.encode()) for name in row) + len(row["cache_key"]["S"]) + len(value)
    assert parts < item_bytes(key, item) <= parts + 21  # a number takes up to 21 bytes


class ServiceError(Exception):
    def __init__(self, response: Any) -> None:
        super().__init__("a message with a secret")
        self.response = response


@pytest.mark.parametrize(
    ("exc", "name", "may_repeat", "permanent"),
    [
        (ServiceError({"Error": {"Code": "ThrottlingException"}}), "ThrottlingException", True, False),
        (ServiceError({"Error": {"Code": "AccessDeniedException"}}), "AccessDeniedException", False, True),
        (ServiceError({"Error": {"Code": "<html>a page</html>"}}), "GarbageAnswer", False, False),
        (ServiceError({"Error": {"Code": 502}}), "GarbageAnswer", False, False),
        (ServiceError({}), "GarbageAnswer", False, False),
        (TimeoutError("secret"), "TimeoutError", False, False),
    ],
)
def test_failures_have_names(exc: Exception, name: str, may_repeat: bool, permanent: bool) -> None:
    """A failure is known by its code or type; what its message says goes nowhere."""
    failure = failure_of(exc)
    assert (failure.name, failure.may_repeat, failure.permanent) == (name, may_repeat, permanent)
    assert "secret" not in repr(failure)
