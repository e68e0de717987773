"""The store on DynamoDB does what the store in memory does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from coldframe.jobs.dynamodb import DynamoStore
from coldframe.jobs.ports import Unavailable
from coldframe.jobs.records import Job, Options, Push, Result, Source
from coldframe.jobs.states import Event, State
from tests.jobs_table import JOBS_TABLE, create_jobs_table
from tests.jobs_world import MemoryStore


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A table of jobs, in memory."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        with mock_aws():
            made = boto3.client("dynamodb")
            create_jobs_table(made)
            yield made


def store_of(client: Any, now_s: float = 100.0) -> DynamoStore:
    return DynamoStore(JOBS_TABLE, lambda: client, lambda: now_s, 3600.0)


def job(name: str, **changes: Any) -> Job:
    source = Source("s3://ours/in", "jsonl")
    fields: dict[str, Any] = {"source": source, "push": Push(sns=True), **changes}
    return Job(name, "digest", State.QUEUED, Options("m", ("auto",), 2), 90.0, 1e9, **fields)


STEPS = st.one_of(
    st.sampled_from(Event).map(lambda event: ("apply", event, "why")),
    st.integers(1, 3).map(lambda parts: ("set_parts", parts)),
    st.integers(0, 2).map(lambda part: ("record", Result(part, f"digest {part}", "v", 1, b"[]"))),
    st.just(("set_notified",)),
    st.just(("create", None)),
)


NAMES = (f"job {number}" for number in count())


@given(st.lists(STEPS, max_size=12))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_as_in_memory(client: Any, steps: list[tuple[Any, ...]]) -> None:
    """After any calls in any order both stores say the same of a job."""
    name = next(NAMES)
    both = store_of(client), MemoryStore()
    first = job(name)
    for store in both:
        store.create(first)
    for method, *given_ in steps:
        arguments = [job(name, source=None)] if method == "create" else [name, *given_]
        answers = [getattr(store, method)(*arguments) for store in both]
        assert method == "set_notified" or answers[0] == answers[1]
    assert both[0].get(name) == both[1].get(name)
    assert both[0].results(name) == both[1].results(name)
    parts = [(name, part) for part in range(4)]
    assert both[0].recorded(parts) == both[1].recorded(parts)


def test_starts(client: Any) -> None:
    """A start that is noted twice is one; one that is over is none."""
    store = store_of(client)
    assert [store.add_start("m", start) for start in ("1", "1", "2")] == [1, 1, 2]
    assert store.starts(["m", "m", "other"]) == {"m": 2}
    for start in ("1", "2", "2"):
        store.remove_start("m", start)
    assert store.starts(["m"]) == {}


def test_many_jobs(client: Any) -> None:
    """More jobs than one call takes are read; those that are not there are left out."""
    store = store_of(client)
    names = [f"many {number}" for number in range(230)]
    for name in names:
        store.create(job(name))
    assert set(store.get_many([*names, "none"])) == set(names)


def test_expired_jobs(client: Any) -> None:
    """A job past its time is none, even where DynamoDB has not deleted it yet."""
    store_of(client).create(job("short"))
    assert store_of(client, now_s=2e9).get("short") is None


class Failing:
    """A client whose every call fails."""

    def __getattr__(self, name: str) -> Any:
        def fail(**request: Any) -> Any:
            raise ClientError({"Error": {"Code": "ThrottlingException"}}, name)

        return fail


def test_failures() -> None:
    """Whatever goes wrong is said to be unavailable, and holds nothing of the request."""
    store = store_of(Failing())
    with pytest.raises(Unavailable, match="ClientError"):
        store.get("a")
    with pytest.raises(Unavailable):
        store.apply("a", Event.BEGIN)
    with pytest.raises(Unavailable):
        store.record("a", Result(0, "", "", 0))


def test_a_conflict_of_transactions_is_no_condition() -> None:
    """A transaction that met another one is to be repeated, and is not taken for recorded."""

    class Conflicting:
        def transact_write_items(self, **request: Any) -> Any:
            reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
            response = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
            raise ClientError(response, "TransactWriteItems")

    with pytest.raises(Unavailable):
        store_of(Conflicting()).record("a", Result(0, "", "", 0))
