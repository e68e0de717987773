"""The table of feedback loses no label and invents none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from coldframe.feedback.ids import Answer
from coldframe.feedback.table import FeedbackTable, TableFails
from coldframe.monitoring.reading import Label

DAY_S = 86_400
NOW_S = 1_800_000_000  # 2027-01-15 08:00 UTC
ANSWER = Answer("sha256:1", "auto", "sci.space", 0.75, NOW_S, True, bytes(16))


@pytest.fixture
def table(client: Any) -> FeedbackTable:
    """An empty table."""
    return FeedbackTable("feedback", lambda: client, lambda: NOW_S)


def _numbered(number: int, moment_s: int = NOW_S) -> Answer:
    return msgspec.structs.replace(ANSWER, nonce=number.to_bytes(16, "big"), moment_s=moment_s)


def _all(table: FeedbackTable) -> list[Label]:
    return list(table.labels(NOW_S - 9 * DAY_S, NOW_S + DAY_S))


def test_a_label_is_kept_once(table: FeedbackTable) -> None:
    """The same label again changes nothing."""
    assert table.add(ANSWER, "sci.space", NOW_S + DAY_S)
    assert table.add(ANSWER, "sci.space", NOW_S + DAY_S)
    assert _all(table) == [Label("sha256:1", "auto", 0.75, True, "random")]


def test_the_first_label_stays(table: FeedbackTable) -> None:
    """Another label is refused, and accepted once the first is removed."""
    assert table.add(ANSWER, "sci.med", NOW_S + DAY_S)
    assert not table.add(ANSWER, "sci.space", NOW_S + DAY_S)
    assert [label.right for label in _all(table)] == [False]
    table.remove(ANSWER)
    table.remove(ANSWER)
    assert _all(table) == []
    assert table.add(ANSWER, "sci.space", NOW_S + DAY_S)
    assert [label.right for label in _all(table)] == [True]


def test_an_answer_that_was_not_drawn_is_a_complaint(table: FeedbackTable) -> None:
    """Only answers that chance drew count as random."""
    table.add(msgspec.structs.replace(ANSWER, is_drawn=False), "sci.med", NOW_S + DAY_S)
    assert [label.drawn for label in _all(table)] == ["complaint"]


def test_an_expired_label_is_left_out(client: Any, table: FeedbackTable) -> None:
    """DynamoDB deletes hours late: until then nobody reads the label, and a new one replaces it."""
    table.add(ANSWER, "sci.med", NOW_S)
    assert len(client.scan(TableName="feedback")["Items"]) == 1
    assert _all(table) == []
    assert table.add(ANSWER, "sci.space", NOW_S + DAY_S)
    assert [label.right for label in _all(table)] == [True]


def test_labels_are_read_by_the_moment_of_the_answer(table: FeedbackTable) -> None:
    """The first moment belongs to the time, and the last does not."""
    for days in range(4):
        table.add(_numbered(days, NOW_S - days * DAY_S), "sci.space", NOW_S + DAY_S)
    assert len(list(table.labels(NOW_S - 2 * DAY_S, NOW_S))) == 2
    assert len(list(table.labels(NOW_S, NOW_S))) == 0


def test_all_pages_are_read(table: FeedbackTable) -> None:
    """A day with more than DynamoDB's page of 1 MB is read to its end."""
    label = "x" * 40_000
    for number in range(40):
        table.add(_numbered(number), label, NOW_S + DAY_S)
    assert len(_all(table)) == 40


class _Atomic:
    """A client whose writes are atomic, as DynamoDB's are: moto checks a condition, and writes later."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = Lock()

    def put_item(self, **arguments: Any) -> Any:
        with self._lock:
            return self._client.put_item(**arguments)

    def query(self, **arguments: Any) -> Any:
        return self._client.query(**arguments)


def test_one_of_many_writers_wins(client: Any) -> None:
    """Of sixteen threads with different labels for one answer, one keeps its label."""
    atomic = _Atomic(client)
    table = FeedbackTable("feedback", lambda: atomic, lambda: NOW_S)
    with ThreadPoolExecutor(16) as pool:
        kept = list(pool.map(lambda each: table.add(ANSWER, f"label{each}", NOW_S + DAY_S), range(16)))
    assert sum(kept) == 1
    assert len(_all(table)) == 1


class _Failing:
    """A client whose calls fail."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def put_item(self, **_: Any) -> None:
        raise self._error

    query = delete_item = put_item


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="http://127.0.0.1:1"),
        ClientError({"Error": {"Code": "TransactionConflictException"}}, "PutItem"),
    ],
)
def test_a_failure_is_named(error: Exception) -> None:
    """A table that fails raises one error, whatever the call."""
    table = FeedbackTable("feedback", lambda: _Failing(error), lambda: NOW_S)
    with pytest.raises(TableFails):
        table.add(ANSWER, "sci.space", NOW_S + DAY_S)
    with pytest.raises(TableFails):
        table.remove(ANSWER)
    with pytest.raises(TableFails):
        _all(table)
