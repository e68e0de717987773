"""The store on DynamoDB does what the store in memory does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coldframe.jobs.dynamodb import DynamoStore
from coldframe.jobs.object_file import Cursor, Pin
from coldframe.jobs.ports import Unavailable
from coldframe.jobs.records import Job, Options, PartName, Push, Result, Source, SplitPlace
from coldframe.jobs.states import Event, State
from tests.support.dynamodb import JOBS_TABLE, create_jobs_table, dynamodb_in_memory
from tests.support.jobs_world import MemoryStore


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A table of jobs, in memory."""
    with dynamodb_in_memory() as made:
        create_jobs_table(made)
        yield made


NOW_S = 100.0


def store_of(client: Any, now_s: float = NOW_S) -> DynamoStore:
    return DynamoStore(JOBS_TABLE, lambda: client, lambda: now_s, 3600.0)


def job(name: str, **changes: Any) -> Job:
    source, pin = Source("s3://ours/in", "jsonl"), Pin('"etag"', 5)
    fields: dict[str, Any] = {"source": source, "pin": pin, "push": Push(sns=True), **changes}
    fields = {"generation": "g", "digest": "digest", "expires_s": 1e9, **fields}
    return Job(name, state=State.QUEUED, options=Options("m", ("auto",), 2), created_s=90.0, **fields)


PLACES = (SplitPlace(), SplitPlace(Cursor(10, 1), 1, 5, "a"), SplitPlace(Cursor(20, 2), 2, 9, "b"))
JOBS = st.sampled_from(("g", "other"))
STEPS = st.one_of(
    st.sampled_from((Event.FINISH, Event.FAIL, Event.CANCEL)).map(lambda event: ("end", event, "why")),
    st.integers(1, 3).map(lambda parts: ("set_parts", parts)),
    st.sampled_from(PLACES).map(lambda place: ("begin_split", place)),
    st.tuples(st.sampled_from(PLACES), st.none() | st.integers(1, 3)).map(lambda to: ("advance", *to)),
    st.sampled_from("ab").map(lambda start: ("add_split_start", start)),
    st.sampled_from("ab").map(lambda start: ("remove_split_start", start)),
    st.integers(0, 2).map(lambda part: ("put_result", Result(part, f"digest {part}", "v", 1, b"[]"))),
    st.lists(st.integers(0, 3), min_size=1).map(lambda parts: ("add_done", parts)),
    st.just(("set_notified",)),
    st.just(("postpone", 500.0)),
    st.just(("create",)),
)
WITHOUT_ANSWER = ("begin_split", "remove_split_start", "put_result", "set_notified", "postpone")
NAMES = (f"job {number}" for number in count())


@given(st.lists(st.tuples(JOBS, STEPS, st.sampled_from((NOW_S, NOW_S, 2e9))), max_size=14))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_as_in_memory(client: Any, steps: list[tuple[str, tuple[Any, ...], float]]) -> None:
    """After any calls in any order, of any generation, at any time, both stores say the same of a job."""
    name, clock = next(NAMES), [NOW_S]
    both = (
        DynamoStore(JOBS_TABLE, lambda: client, lambda: clock[0], 3600.0),
        MemoryStore(now=lambda: clock[0]),
    )
    for store in both:
        store.create(job(name))
    for generation, (method, *arguments), now_s in steps:
        clock[0] = max(clock[0], now_s)
        known = both[0].get(name)
        about = job(name, generation=generation, split=known.split if known else None, digest=generation)
        answers = [getattr(store, method)(about, *arguments) for store in both]
        assert method in WITHOUT_ANSWER or answers[0] == answers[1], method
        assert both[0].get(name) == both[1].get(name)
    for generation in ("g", "other"):
        about = job(name, generation=generation)
        assert list(both[0].results(about, 1)) == list(both[1].results(about, 1))
        parts = [PartName(name, generation, part) for part in range(4)]
        assert both[0].recorded(parts) == both[1].recorded(parts)


def test_a_request_repeated_after_its_expiry(client: Any) -> None:
    """It begins anew in both orders of DynamoDB's deletions, with nothing of what was before."""
    for deleted in ("nothing", "job", "parts"):
        name = f"weekly {deleted}"
        first, store = job(name, generation="first", expires_s=200.0), store_of(client)
        store.create(first)
        store.put_result(first, Result(0, "old", "v", 1, b"[]"))
        store.add_done(first, [0])
        if deleted != "nothing":
            item = "job" if deleted == "job" else "part#first#00000"
            client.delete_item(TableName=JOBS_TABLE, Key={"job": {"S": name}, "item": {"S": item}})
        later = store_of(client, now_s=201.0)
        assert later.get(name) is None
        created = later.create(job(name, generation="second"))
        assert (created.generation, created.done, created.state) == ("second", frozenset(), State.QUEUED)
        assert later.get(name) == created
        assert later.recorded([PartName(name, "second", 0)]) == set()
        later.add_done(first, [1])  # what came too late
        assert later.get(name) == created


def test_due_jobs(client: Any) -> None:
    """The index holds a job from its creation on, until it has ended and nobody is to be notified."""
    store = store_of(client)
    names = ("watched", "ended", "told", "pushed")
    jobs = {name: store.create(job(name, push=Push(sns=True) if name != "ended" else None)) for name in names}
    for name in ("ended", "told", "pushed"):
        store.end(jobs[name], Event.FAIL)
    store.set_notified(jobs["told"])

    def due(now_s: float) -> set[str]:
        return {each.id for each in store.due(now_s)} & set(names)

    assert due(NOW_S) == set()
    assert due(NOW_S + 600.0) == {"pushed"}
    assert due(90.0 + 4 * 86_400.0) == {"pushed", "watched"}
    store.postpone(jobs["pushed"], 5e8)
    store.postpone(jobs["told"], 0.0)
    assert due(90.0 + 4 * 86_400.0) == {"watched"}


def test_a_job_that_vanishes_while_it_is_created(client: Any) -> None:
    """A job that is refused for one that is deleted in this moment is created all the same."""
    store = store_of(client)
    store.create(job("vanishing", generation="old"))

    class Vanishing:
        def __getattr__(self, method: str) -> Any:
            return getattr(client, method)

        def get_item(self, **request: Any) -> Any:
            client.delete_item(TableName=JOBS_TABLE, Key=request["Key"])
            return client.get_item(**request)

    found = store_of(Vanishing()).create(job("vanishing", generation="new"))
    assert found.generation == "new"
    assert store.get("vanishing") == found


def test_a_write_that_is_repeated_is_known(client: Any) -> None:
    """boto3 repeats a write whose answer was lost: the second one is refused, and the first one counts."""
    store = store_of(client)
    twice = store_of(Twice(client))
    first = twice.create(job("twice", split=None))
    assert store.get("twice") == first
    store.begin_split(first, PLACES[0])
    moved = twice.advance(job("twice", split=PLACES[0]), PLACES[1], 3)
    assert moved is not None
    assert (moved.split, moved.parts) == (PLACES[1], 3)
    twice.put_result(first, Result(0, "a", "v", 1))
    assert [result.digest for result in store.results(first, 0)] == ["a"]
    counted = twice.add_done(first, [0, 1])
    assert counted is not None
    assert counted.done == {0, 1}


class Twice:
    """A client whose every write is done twice; the answer is the second one's."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._client, method)
        if method not in ("put_item", "update_item"):
            return call

        def twice(**request: Any) -> Any:
            with contextlib.suppress(ClientError):
                call(**request)
            return call(**request)

        return twice


def test_many_threads_count_the_same_job(client: Any) -> None:
    """Parts of one job that are counted at the same moment are all counted, and by no transaction."""
    store = store_of(client)
    crowded = job("crowded")
    store.create(crowded)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda part: store.add_done(crowded, [part]), range(200)))
    found = store.get("crowded")
    assert found is not None
    assert found.done == set(range(200))


def test_results_are_read_as_they_are_taken(client: Any) -> None:
    """A page of results costs the reads of that page, however many parts follow."""
    store, large = store_of(client), job("large")
    for part in range(60):
        store.put_result(large, Result(part, "d", "v", 1, b"x" * 32_000))
    reads: list[int] = []

    class Counting:
        def query(self, **request: Any) -> Any:
            reads.append(1)
            return client.query(**request)

    results = store_of(Counting()).results(large, 10)
    assert [next(results).part for _ in range(5)] == [10, 11, 12, 13, 14]
    assert len(reads) == 1
    assert [result.part for result in results] == list(range(15, 60))
    assert len(reads) > 1


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
        store.end(job("a"), Event.FAIL)
    with pytest.raises(Unavailable):
        store.put_result(job("a"), Result(0, "", "", 0))
